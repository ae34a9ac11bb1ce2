/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The varlink server on a real socket in a temporary directory. Server and
 * clients share one thread: each client operation turns the loop until it has
 * what it waits for.
 */
#ifndef MTHPD_TEST_VARLINK_WORLD_H
#define MTHPD_TEST_VARLINK_WORLD_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include <cmocka.h>

#include "cleanup.h"
#include "varlink-wire.h"
#include "varlink.h"

#define NOBODY 65534
#define WAIT_MSEC 5000
#define DESCRIPTION "interface org.test\nmethod Echo(text: string) -> (text: string)\n"

struct state {
	char dir[64], path[128];
	struct event_base *base;
	struct varlink_server *server;
	unsigned calls;
	size_t reply_bytes;
};

/* ---- the service ---- */

static inline int echo(
	const struct varlink_call *call, void *userdata, json_t **ret, const char **ret_error)
{
	struct state *s = userdata;
	const char *text = json_string_value(json_object_get(call->parameters, "text"));

	(void)ret_error;
	s->calls++;
	if (!text) {
		*ret = json_pack("{s:s}", "parameter", "text");
		return -EINVAL;
	}
	*ret = json_pack("{s:s}", "text", text);
	return 0;
}

static inline int big(
	const struct varlink_call *call, void *userdata, json_t **ret, const char **ret_error)
{
	struct state *s = userdata;
	_cleanup_free_ char *text = malloc(s->reply_bytes + 1);

	(void)call;
	(void)ret_error;
	memset(text, 'x', s->reply_bytes);
	text[s->reply_bytes] = '\0';
	*ret = json_pack("{s:s}", "text", text);
	s->calls++;
	return 0;
}

static inline int monitor(
	const struct varlink_call *call, void *userdata, json_t **ret, const char **ret_error)
{
	(void)userdata;
	(void)ret;
	(void)ret_error;
	return varlink_stream_start(call->client, 3);
}

/* Not a stream method: starting one must be refused. */
static inline int sneak(
	const struct varlink_call *call, void *userdata, json_t **ret, const char **ret_error)
{
	(void)userdata;
	(void)ret_error;
	*ret = json_pack("{s:i}", "result", varlink_stream_start(call->client, 3));
	return 0;
}

static inline int fails(
	const struct varlink_call *call, void *userdata, json_t **ret, const char **ret_error)
{
	int err = (int)json_integer_value(json_object_get(call->parameters, "errno"));

	(void)userdata;
	if (err == ENOENT) {
		*ret_error = "org.test.NotFound";
		*ret = json_pack("{s:s}", "what", "a group");
	}
	return -err;
}

static const struct varlink_method methods[] = {
	{"org.test.Echo", false, false, NULL, echo},
	{"org.test.Big", false, false, NULL, big},
	{"org.test.Change", true, false, NULL, echo},
	{"org.test.Monitor", false, true, NULL, monitor},
	{"org.test.Sneak", false, false, NULL, sneak},
	{"org.test.Fail", false, false, NULL, fails},
	{"org.test.Later", false, false, NULL, NULL},
	{"org.test.One", false, false, "text", echo},
	{"org.test.None", false, false, "", echo},
};

static struct varlink_info info = {"vendor", "product", "1.2", "https://example.org", "org.test",
	DESCRIPTION, methods, ELEMENTSOF(methods), NULL};

/* ---- client side ---- */

static inline uint64_t now_msec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static inline void turn(struct state *s)
{
	struct timespec nap = {0, 200000};

	assert_true(event_base_loop(s->base, EVLOOP_NONBLOCK) >= 0);
	nanosleep(&nap, NULL);
}

static inline void turn_for(struct state *s, unsigned msec)
{
	uint64_t end = now_msec() + msec;

	while (now_msec() < end)
		turn(s);
}

static inline int dial(struct state *s)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	strcpy(a.sun_path, s->path);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static inline void put(struct state *s, int fd, const char *bytes, size_t len)
{
	uint64_t end = now_msec() + WAIT_MSEC;

	while (len > 0) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		} else {
			assert_int_equal(errno, EAGAIN);
			assert_true(now_msec() < end);
		}
		turn(s);
	}
}

/* One message, NULL at the end of the connection; fails when neither comes. */
static inline json_t *get(struct state *s, int fd)
{
	static char buf[VARLINK_OUTPUT_BYTES_MAX + 1];
	size_t len = 0;
	uint64_t end = now_msec() + WAIT_MSEC;

	while (now_msec() < end && len < sizeof(buf)) {
		/* looks first, so that the next message stays where it is */
		ssize_t n = recv(fd, buf + len, sizeof(buf) - len, MSG_PEEK);
		char *nul = n > 0 ? memchr(buf + len, 0, (size_t)n) : NULL;

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return NULL;
		if (n < 0) {
			turn(s);
			continue;
		}
		n = recv(fd, buf + len, nul ? (size_t)(nul - buf) + 1 - len : (size_t)n, 0);
		assert_true(n > 0);
		len += (size_t)n;
		if (nul) {
			json_t *j = json_loads(buf, 0, NULL);

			assert_non_null(j);
			return j;
		}
	}
	fail_msg("no reply");
	return NULL;
}

static inline json_t *call(struct state *s, int fd, const char *text)
{
	put(s, fd, text, strlen(text) + 1);
	return get(s, fd);
}

static inline const char *str(const json_t *j, const char *object, const char *key)
{
	const char *v = json_string_value(json_object_get(json_object_get(j, object), key));

	return v ? v : "";
}

static inline void assert_error(json_t *j, const char *error)
{
	assert_non_null(j);
	assert_string_equal(json_string_value(json_object_get(j, "error")), error);
	assert_true(json_is_object(json_object_get(j, "parameters")));
}

static inline void assert_works(struct state *s, int fd)
{
	json_t *j = call(s, fd, "{\"method\":\"org.test.Echo\",\"parameters\":{\"text\":\"ok\"}}");

	assert_string_equal(str(j, "parameters", "text"), "ok");
	assert_null(json_object_get(j, "error"));
	assert_null(json_object_get(j, "continues"));
	json_decref(j);
}

static inline void assert_closed(struct state *s, int fd)
{
	assert_null(get(s, fd));
	close(fd);
}

static inline bool am_root(void)
{
	return geteuid() == 0;
}

/* ---- set-up ---- */

static inline int setup(void **state)
{
	struct state *s = calloc(1, sizeof(*s));

	strcpy(s->dir, "/tmp/test-varlink-XXXXXX");
	if (!mkdtemp(s->dir) || chmod(s->dir, 0755) < 0)
		return -1;
	snprintf(s->path, sizeof(s->path), "%s/sock", s->dir);
	s->base = event_base_new();
	s->reply_bytes = 100;
	info.userdata = s;
	*state = s;
	return varlink_server_new(s->base, s->path, &info, &s->server);
}

static inline int teardown(void **state)
{
	struct state *s = *state;

	varlink_server_free(s->server);
	event_base_free(s->base);
	/* fails if the socket was left behind */
	if (rmdir(s->dir) < 0)
		return -1;
	free(s);
	return 0;
}

#endif
