/* A candidate in C that a judge calls: adds the numbers of an array, or echoes what it is given.

   Frames: 4 bytes of length and 8 of nonce, big-endian, then the payload; an answer repeats the nonce. Values are
   little-endian, as this machine is. docs/relay.md has the whole of it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char *request;
static uint32_t length, at;

static void take(void *to, uint32_t count) {
    if (count > length - at) exit(3);
    memcpy(to, request + at, count);
    at += count;
}

static int receive(unsigned char nonce[8]) {
    unsigned char header[12];
    if (fread(header, 1, 12, stdin) != 12) return 0;
    length = (uint32_t)header[0] << 24 | header[1] << 16 | header[2] << 8 | header[3];
    memcpy(nonce, header + 4, 8);
    request = realloc(request, length + 1);
    at = 0;
    return request && fread(request, 1, length, stdin) == length;
}

static void answer(const unsigned char nonce[8], const void *payload, uint32_t count) {
    unsigned char header[4] = {count >> 24, count >> 16, count >> 8, count};
    fwrite(header, 1, 4, stdout);
    fwrite(nonce, 1, 8, stdout);
    fwrite(payload, 1, count, stdout);
    fflush(stdout);
}

/* The list ["name", argument]: returns the name's first letter, and stands at the argument. */
static char function(void) {
    char tag, name[64] = "";
    uint32_t count, size;
    take(&tag, 1), take(&count, 4);
    if (tag != 'l' || count != 2) exit(3);
    take(&tag, 1), take(&size, 4);
    if (tag != 's' || size >= sizeof name) exit(3);
    take(name, size);
    return strcmp(name, "add") == 0 ? 'a' : strcmp(name, "echo") == 0 ? 'e' : '?';
}

static double sum_of_array(void) {
    unsigned char tag, size, sides;
    char dtype[8] = "";
    uint64_t count;
    double sum = 0, number;
    take(&tag, 1), take(&size, 1);
    if (tag != 'a' || size != 2) exit(3);
    take(dtype, 2), take(&sides, 1);
    if (strcmp(dtype, "f8") || sides != 1) exit(3);
    for (take(&count, 8); count--; sum += number) take(&number, 8);
    return sum;
}

static void call(const unsigned char nonce[8]) {
    switch (function()) {
    case 'a': {
        unsigned char value[10] = "Vf";
        double sum = sum_of_array();
        memcpy(value + 2, &sum, 8);
        answer(nonce, value, sizeof value);
        break;
    }
    case 'e':
        request[at - 1] = 'V'; /* the argument lies behind it, as it came */
        answer(nonce, request + at - 1, length - at + 1);
        break;
    default:
        answer(nonce, "El\2\0\0\0s\7\0\0\0missings\2\0\0\0no", 25);
    }
}

int main(void) {
    unsigned char nonce[8];
    while (receive(nonce)) {
        char kind;
        take(&kind, 1);
        if (kind == 'L') answer(nonce, "Ll\2\0\0\0s\3\0\0\0adds\4\0\0\0echo", 23);
        else if (kind == 'N') answer(nonce, "N", 1);
        else call(nonce);
    }
    fprintf(stderr, "nobody calls any more\n");
    return 0;
}
