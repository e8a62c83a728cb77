// Rules - choices that Portals 4 leaves to an implementation, and that a model may make.
//
// Contract: without any of them the model allows all that Portals 4 allows. Each choice only takes outcomes away.
// Threads: plain values. Time: none.
#pragma once

namespace spinloom::model {

struct Rules {
  // Owed events come with the event that makes them due: overflow events of headers that were taken while their data
  // arrived, LINK behind them, AUTO_UNLINK, AUTO_FREE, PT_DISABLED.
  bool owes_nothing = false;
  // A put or an atomic of which no byte lands is reported when it is matched.
  bool reports_nothing_at_once = false;
  // An event and its count are one step.
  bool counts_with_event = false;
  // A header that was taken while its data arrives needs its place until it is reported.
  bool claims_hold_places = false;
  // A search needs no place of its own among the entries.
  bool search_needs_no_entry = false;
  // The limit of operations that wait for a counter holds for those that move data, and counts only those.
  bool counts_wait_freely = false;
  // Unlinking an entry that has unlinked itself says in_use as long as a message uses it, and invalid afterwards, even
  // if headers refer to it.
  bool unlink_tells_of_messages = false;
  // An unlink may wait for a counter even if its entry is not linked, unless the entry's append was cancelled.
  bool unlinks_always_wait = false;
};

}  // namespace spinloom::model
