/* printf() of handlers: its characters become lines of spl_debug(), with the identifier of the frame's message.
 *
 * Contract: d i u x X o c s p %, flags - + 0 # and space, width, precision, h hh l ll z j t; other conversions are
 *   printed as they stand. A line appears when it ends or is full; until then it waits in the state, one line an HPU,
 *   as in FPsPIN's stdout. Threads: one an HPU. Time: its instructions, and a call a line.
 */
#ifndef SPINLOOM_PSPIN_STDIO_H
#define SPINLOOM_PSPIN_STDIO_H

#include <stdarg.h>

#include "spinloom/divide.h"
#include "spinloom/pspin/spin_conf.h"

static inline int spl_pspin_putchar(int character) {
  struct spl_pspin_line *line =
      (struct spl_pspin_line *)(spl_pspin_state() + SPL_PSPIN_LINES) + PTL_MY_HPU % SPL_HOST_HPUS;
  if (character != '\n') line->text[line->used++] = (char)character;
  if (character == '\n' || line->used == sizeof line->text - 1) {
    line->text[line->used] = 0;
    line->used = 0;
    (void)spl_debug(line->text, spl_frame_message());
  }
  return character;
}

struct spl_pspin_format {
  bool left, zero, sign, space, alternate;
  int width, precision; /* precision -1: not given */
};

static inline int spl_pspin_repeat(char character, int times) {
  int put = 0;
  for (; put < times; ++put) (void)spl_pspin_putchar(character);
  return put;
}
static inline int spl_pspin_text(const char *text, int length, struct spl_pspin_format format) {
  int put = format.left ? 0 : spl_pspin_repeat(' ', format.width - length);
  for (int i = 0; i < length; ++i) (void)spl_pspin_putchar(text[i]);
  put += length;
  return put + spl_pspin_repeat(' ', format.width - put);
}
static inline int spl_pspin_number(uint64_t value, bool negative, unsigned base, bool capitals,
                                   struct spl_pspin_format format) {
  char digits[24];
  int used = 0, prefixes = 0;
  char prefix[3];
  if (negative || format.sign || format.space) prefix[prefixes++] = negative ? '-' : format.sign ? '+' : ' ';
  if (format.alternate && base == 16 && value != 0) {
    prefix[prefixes++] = '0';
    prefix[prefixes++] = capitals ? 'X' : 'x';
  }
  for (; value != 0; value /= base) {
    digits[used++] = (capitals ? "0123456789ABCDEF" : "0123456789abcdef")[value % base];
  }
  if (format.alternate && base == 8) digits[used++] = '0';
  if (used == 0 && format.precision != 0) digits[used++] = '0';
  int zeros = format.precision - used;
  if (format.precision < 0 && format.zero && !format.left) zeros = format.width - prefixes - used;
  if (zeros < 0) zeros = 0;
  int put = format.left ? 0 : spl_pspin_repeat(' ', format.width - prefixes - zeros - used);
  for (int i = 0; i < prefixes; ++i) (void)spl_pspin_putchar(prefix[i]);
  put += prefixes + spl_pspin_repeat('0', zeros);
  for (int i = used; i > 0; --i) (void)spl_pspin_putchar(digits[i - 1]);
  put += used;
  return put + spl_pspin_repeat(' ', format.width - put);
}
static inline const char *spl_pspin_decimal(const char *at, int *value) {
  for (*value = 0; *at >= '0' && *at <= '9'; ++at) *value = *value * 10 + (*at - '0');
  return at;
}

static __attribute__((unused)) int spl_pspin_vprintf(const char *at, va_list arguments) {
  int put = 0;
  for (; *at != 0; ++at) {
    if (*at != '%') {
      (void)spl_pspin_putchar(*at);
      ++put;
      continue;
    }
    const char *const begin = at++;
    struct spl_pspin_format format = {.precision = -1};
    for (;; ++at) {
      if (*at == '-')
        format.left = true;
      else if (*at == '0')
        format.zero = true;
      else if (*at == '+')
        format.sign = true;
      else if (*at == ' ')
        format.space = true;
      else if (*at == '#')
        format.alternate = true;
      else
        break;
    }
    if (*at == '*') {
      format.width = va_arg(arguments, int);
      ++at;
      if (format.width < 0) {
        format.left = true;
        format.width = -format.width;
      }
    } else {
      at = spl_pspin_decimal(at, &format.width);
    }
    if (*at == '.') {
      if (at[1] == '*') {
        format.precision = va_arg(arguments, int);
        at += 2;
      } else {
        at = spl_pspin_decimal(at + 1, &format.precision);
      }
    }
    unsigned bytes = sizeof(int);
    for (;; ++at) {
      if (*at == 'h')
        bytes /= 2;
      else if (*at == 'l')
        bytes = at[1] == 'l' || at[-1] == 'l' ? sizeof(long long) : sizeof(long);
      else if (*at == 'z')
        bytes = sizeof(size_t);
      else if (*at == 't')
        bytes = sizeof(ptrdiff_t);
      else if (*at == 'j')
        bytes = sizeof(intmax_t);
      else
        break;
    }
    const unsigned unused_bits = 64 - 8 * bytes;
    switch (*at) {
      case 'd':
      case 'i': {
        const int64_t given = bytes > sizeof(int) ? va_arg(arguments, int64_t) : va_arg(arguments, int);
        const int64_t value = (int64_t)((uint64_t)given << unused_bits) >> unused_bits;
        put += spl_pspin_number(value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0, 10, false, format);
        break;
      }
      case 'u':
      case 'x':
      case 'X':
      case 'o': {
        const uint64_t given = bytes > sizeof(int) ? va_arg(arguments, uint64_t) : va_arg(arguments, unsigned);
        format.sign = format.space = false;
        put += spl_pspin_number(given << unused_bits >> unused_bits, false,
                                *at == 'u'   ? 10
                                : *at == 'o' ? 8
                                             : 16,
                                *at == 'X', format);
        break;
      }
      case 'p':
        format.alternate = true;
        put += spl_pspin_number((uintptr_t)va_arg(arguments, void *), false, 16, false, format);
        break;
      case 'c': {
        const char character = (char)va_arg(arguments, int);
        put += spl_pspin_text(&character, 1, format);
        break;
      }
      case 's': {
        const char *text = va_arg(arguments, const char *);
        int length = 0;
        while ((format.precision < 0 || length < format.precision) && text[length] != 0) ++length;
        put += spl_pspin_text(text, length, format);
        break;
      }
      case '%': put += spl_pspin_text("%", 1, format); break;
      default: /* the rest of the text could have other arguments than it reads */
        for (at = begin; *at != 0; ++at, ++put) (void)spl_pspin_putchar(*at);
        return put;
    }
  }
  return put;
}
static __attribute__((unused)) int spl_pspin_printf(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int put = spl_pspin_vprintf(format, arguments);
  va_end(arguments);
  return put;
}

#define printf spl_pspin_printf
#define putchar spl_pspin_putchar
#define puts(text) spl_pspin_printf("%s\n", (text))

#endif
