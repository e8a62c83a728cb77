// Images - finds and loads the handler images that the program of this process names, and runs their handlers.
//
// Contract: find() takes a name or a path. NAME.elf runs in the sandbox, NAME.so natively. A text with '/' is a path. A
//   name is looked for in the given folders, one after the other; a name without ending is tried in each as the
//   preferred kind of image, then as the other kind.
// Invariants: (1) an image is loaded once and stays loaded.
// Threads: handlers run on any number of threads; find() needs the owner's lock. Time: none.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "live/node/handler_library.hpp"
#include "portals/calls/host.hpp"

namespace spinloom::process {

enum class HandlerKind : uint8_t { sandbox, native };

class Images {
 public:
  static Result<std::unique_ptr<Images>> create(std::vector<std::string> folders, HandlerKind preferred);

  [[nodiscard]] Result<calls::HandlerImage> find(const std::string& name);
  // Runs the handlers of all images.
  [[nodiscard]] const std::shared_ptr<live::HandlerLibrary>& library() const { return library_; }

 private:
  Images(std::vector<std::string> folders, HandlerKind preferred);
  [[nodiscard]] Result<calls::HandlerImage> load(const std::string& path);
  [[nodiscard]] std::vector<std::string> candidates(const std::string& name) const;

  std::vector<std::string> folders_;
  HandlerKind preferred_;
  std::shared_ptr<live::HandlerLibrary> library_;
  std::map<std::string, calls::HandlerImage> loaded_;  // images by path
};

}  // namespace spinloom::process
