/* Every function of spinloom/slmp.h: a message over loopback from one thread to another. */
#include <arpa/inet.h>
#include <pthread.h>
#include <spinloom/slmp.h>
#include <stdio.h>
#include <string.h>

static slmp_receiver_t* receiver;
static const char text[] = "over the loom";

static void* take(void* context) {
  int* good = context;
  slmp_message_t message;
  *good = slmp_receive(receiver, &message, 60000) == SLMP_OK && message.size == sizeof(text) &&
          memcmp(message.data, text, sizeof(text)) == 0 && message.msgid == 9 &&
          message.from == htonl(INADDR_LOOPBACK) && message.port != 0;
  slmp_message_free(&message);
  if (slmp_answer(receiver, 10) != SLMP_OK) *good = 0;
  return NULL;
}

static int go_on(void* context, uint64_t bytes, uint64_t bytes_total) {
  (void)context;
  return bytes > bytes_total;
}

int main(void) {
  slmp_sock_t sock;
  slmp_sent_t sent;
  slmp_received_t received;
  pthread_t thread;
  int good = 0;
  int failed = slmp_listen(&receiver, htonl(INADDR_LOOPBACK), 0, 1 << 20);
  failed |= pthread_create(&thread, NULL, take, &good);
  failed |= slmp_socket(&sock, 4, 4, 1, 2);
  failed |= slmp_set(&sock, SLMP_OPT_PORT, slmp_receiver_port(receiver));
  failed |= slmp_on_progress(&sock, go_on, NULL);
  failed |= slmp_sendmsg(&sock, htonl(INADDR_LOOPBACK), 9, text, sizeof(text));
  failed |= slmp_last_sent(&sock, &sent);
  pthread_join(thread, NULL);
  failed |= slmp_receiver_counts(receiver, &received);
  failed |= slmp_set(&sock, 99, 0) != SLMP_ERR_INVALID || strstr(slmp_last_error(), "option 99") == NULL;
  failed |= slmp_sendmsg(&sock, htonl(INADDR_LOOPBACK), 9, text, ((size_t)1 << 32) + 1) != SLMP_ERR_TOO_LARGE;
  failed |= slmp_close(&sock) | slmp_receiver_close(receiver);
  failed |= sent.packets != 1 || received.messages != 1 || slmp_window(100, 3, 1) != 150;
  failed |= strcmp(slmp_strerror(SLMP_OK), "success") != 0;
  puts(good && !failed ? "good" : slmp_last_error());
  return 0;
}
