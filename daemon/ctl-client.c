/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl-client.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "cleanup.h"

#define READ_BYTES (64 * 1024)

static int64_t now_msec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits for @events until @deadline (now_msec()). 0 or -errno. */
static int wait_for(int fd, short events, int64_t deadline)
{
	struct pollfd p = {.fd = fd, .events = events};

	for (;;) {
		int64_t left = deadline - now_msec();
		int n = poll(&p, 1, left > 0 ? (int)left : 0);

		if (n > 0)
			return 0;
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

static int dial(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -1;

	if (strlen(path) >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	memcpy(a.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* EAGAIN: its queue of new clients is full, so it has not looked for long */
	if (connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return take_fd(&fd);
}

/* A service that turns us away closes while we send: its words are still to be
 * read, so that is no failure here. */
static int send_all(int fd, const char *bytes, size_t len, int64_t deadline)
{
	while (len > 0) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
		int r;

		if (n >= 0) {
			bytes += n;
			len -= (size_t)n;
			continue;
		}
		if (errno == EPIPE || errno == ECONNRESET)
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = wait_for(fd, POLLOUT, deadline);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Room for one more read behind the @len bytes of *buf. Doubled: a long reply is not copied
 * for each of its reads. */
static int make_room(char **buf, size_t *size, size_t len)
{
	size_t wanted = *size ? 2 * *size : READ_BYTES;
	char *more;

	if (*size >= len + READ_BYTES)
		return 0;
	more = realloc(*buf, wanted);
	if (!more)
		return -ENOMEM;
	*buf = more;
	*size = wanted;
	return 0;
}

/* Reads up to the first NUL into *ret_text, to be freed. */
static int receive(int fd, int64_t deadline, char **ret_text)
{
	_cleanup_free_ char *buf = NULL;
	size_t len = 0, size = 0;

	for (;;) {
		ssize_t n;

		if (make_room(&buf, &size, len) < 0)
			return -ENOMEM;
		n = recv(fd, buf + len, READ_BYTES, 0);
		if (n == 0)
			return -ECONNRESET;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n < 0) {
			int r = wait_for(fd, POLLIN, deadline);

			if (r < 0)
				return r;
			continue;
		}
		if (memchr(buf + len, '\0', (size_t)n)) {
			*ret_text = buf;
			buf = NULL;
			return 0;
		}
		len += (size_t)n;
		if (len > CTL_REPLY_BYTES_MAX)
			return -EMSGSIZE;
	}
}

static int parse_reply(const char *text, struct ctl_reply *ret)
{
	struct ctl_reply r = {.root = json_loads(text, 0, NULL)};
	json_t *error = json_object_get(r.root, "error");

	r.parameters = json_object_get(r.root, "parameters");
	r.error = json_string_value(error);
	if (json_is_object(r.root) && !r.parameters) {
		r.parameters = json_object();
		if (json_object_set_new(r.root, "parameters", r.parameters) < 0)
			r.parameters = NULL;
	}
	if (!json_is_object(r.parameters) || (error && !r.error)) {
		json_decref(r.root);
		return -EPROTO;
	}
	*ret = r;
	return 0;
}

/* Connects and sends the call. The descriptor, or -errno. */
static int send_call(
	const char *path, const char *method, json_t *parameters, bool more, int64_t deadline)
{
	json_t *message = json_pack("{s:s,s:o*}", "method", method, "parameters", parameters);
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int fd = -1;
	int r;

	if (message && more)
		json_object_set_new(message, "more", json_true());
	text = message ? json_dumps(message, JSON_COMPACT) : NULL;
	json_decref(message);
	if (!text)
		return -ENOMEM;
	fd = dial(path);
	if (fd < 0)
		return fd;
	r = send_all(fd, text, strlen(text) + 1, deadline);
	return r < 0 ? r : take_fd(&fd);
}

int ctl_call(const char *path, const char *method, json_t *parameters, int timeout_msec,
	struct ctl_reply *ret)
{
	int64_t deadline = now_msec() + timeout_msec;
	_cleanup_free_ char *reply = NULL;
	_cleanup_close_ int fd = send_call(path, method, parameters, false, deadline);
	int r;

	if (fd < 0)
		return fd;
	r = receive(fd, deadline, &reply);
	return r < 0 ? r : parse_reply(reply, ret);
}

struct ctl_stream {
	int fd;
	char *buf;
	size_t len, size;
};

int ctl_stream_open(const char *path, const char *method, json_t *parameters, int timeout_msec,
	struct ctl_stream **ret)
{
	struct ctl_stream *s = calloc(1, sizeof(*s));

	if (!s) {
		json_decref(parameters);
		return -ENOMEM;
	}
	s->fd = send_call(path, method, parameters, true, now_msec() + timeout_msec);
	if (s->fd < 0) {
		int r = s->fd;

		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

/* Takes the first message off the buffer: 1, 0 when it is not there yet, -errno. */
static int take_message(struct ctl_stream *s, struct ctl_reply *ret)
{
	char *end = s->len ? memchr(s->buf, '\0', s->len) : NULL;
	size_t used;
	int r;

	if (!end)
		return s->len > CTL_REPLY_BYTES_MAX ? -EMSGSIZE : 0;
	r = parse_reply(s->buf, ret);
	used = (size_t)(end - s->buf) + 1;
	memmove(s->buf, s->buf + used, s->len - used);
	s->len -= used;
	return r < 0 ? r : 1;
}

static int take_bytes(struct ctl_stream *s)
{
	ssize_t n;

	if (make_room(&s->buf, &s->size, s->len) < 0)
		return -ENOMEM;
	n = recv(s->fd, s->buf + s->len, READ_BYTES, 0);
	if (n == 0)
		return -ECONNRESET;
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	s->len += (size_t)n;
	return 0;
}

int ctl_stream_next(struct ctl_stream *s, int timeout_msec, struct ctl_reply *ret)
{
	int64_t deadline = now_msec() + timeout_msec;

	for (;;) {
		struct pollfd p = {.fd = s->fd, .events = POLLIN};
		int64_t left = deadline - now_msec();
		int r = take_message(s, ret);

		if (r != 0)
			return r < 0 ? r : 0;
		r = poll(&p, 1, left > 0 ? (int)left : 0);
		if (r < 0)
			return -errno;
		if (r == 0)
			return -ETIMEDOUT;
		r = take_bytes(s);
		if (r < 0)
			return r;
	}
}

void ctl_stream_free(struct ctl_stream *s)
{
	if (!s)
		return;
	close(s->fd);
	free(s->buf);
	free(s);
}

void ctl_reply_done(struct ctl_reply *r)
{
	json_decref(r->root);
	*r = (struct ctl_reply){0};
}
