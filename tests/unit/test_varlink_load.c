/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The varlink server with slow, many and greedy clients. */
#include "varlink_world.h"

static void fairness(void **state)
{
	static const char request[] =
		"{\"method\":\"org.test.Echo\",\"parameters\":{\"text\":\"ok\"}}";
	struct state *s = *state;
	static char many[500 * sizeof(request)];
	int greedy = dial(s), other = dial(s);

	turn_for(s, 20);
	s->calls = 0;
	for (size_t i = 0; i < sizeof(many); i += sizeof(request))
		memcpy(many + i, request, sizeof(request));
	assert_int_equal(send(greedy, many, sizeof(many), 0), sizeof(many));
	assert_int_equal(send(other, request, sizeof(request), 0), sizeof(request));
	for (;;) {
		char byte;

		assert_true(event_base_loop(s->base, EVLOOP_NONBLOCK) >= 0);
		if (recv(other, &byte, 1, MSG_PEEK) == 1)
			break;
		assert_true(s->calls < 20);
	}
	close(greedy);
	close(other);
}

/* Sends calls and never reads: others are served all the time, what the
 * server holds for it is bounded, and it is dropped when it has stalled. */
static void slow_client(void **state)
{
	static const char request[] = "{\"method\":\"org.test.Big\"}";
	struct state *s = *state;
	int slow, other;
	ssize_t n;
	unsigned echoes = 0;
	uint64_t begin;
	struct rusage before, after;

	/* longer than a busy machine leaves this program waiting: then "other" would be slow too */
	varlink_server_set_timeouts(s->server, 10000, 3000);
	slow = dial(s);
	other = dial(s);
	s->reply_bytes = 1024 * 1024;
	s->calls = 0;
	getrusage(RUSAGE_SELF, &before);
	begin = now_msec();
	while ((n = send(slow, request, sizeof(request), MSG_NOSIGNAL)) > 0 &&
		now_msec() - begin < 50)
		;
	while (varlink_client_count(s->server) == 2 || s->calls == 0) {
		assert_true(now_msec() - begin < WAIT_MSEC);
		assert_works(s, other);
		echoes++;
	}
	getrusage(RUSAGE_SELF, &after);
	assert_true(now_msec() - begin >= 2950);
	/* the second answer never began */
	assert_int_equal(s->calls - echoes, 1);
	assert_true(after.ru_maxrss - before.ru_maxrss < 64 * 1024);
	assert_works(s, other);
	close(other);
	close(slow);
}

static void reply_too_large(void **state)
{
	struct state *s = *state;
	int fd = dial(s);
	json_t *j;

	s->reply_bytes = VARLINK_OUTPUT_BYTES_MAX;
	j = call(s, fd, "{\"method\":\"org.test.Big\"}");
	assert_error(j, "org.test.Failed");
	assert_string_equal(str(j, "parameters", "message"), "Message too long");
	json_decref(j);
	assert_works(s, fd);
	s->reply_bytes = VARLINK_OUTPUT_BYTES_MAX - 100;
	j = call(s, fd, "{\"method\":\"org.test.Big\"}");
	assert_int_equal(strlen(str(j, "parameters", "text")), s->reply_bytes);
	json_decref(j);
	close(fd);
}

static int subscribe(struct state *s)
{
	int fd = dial(s);
	json_t *j = call(s, fd, "{\"method\":\"org.test.Monitor\",\"more\":true}");

	assert_true(json_is_true(json_object_get(j, "continues")));
	assert_null(json_object_get(j, "error"));
	json_decref(j);
	return fd;
}

static void stream(void **state)
{
	struct state *s = *state;
	int a = subscribe(s), b = subscribe(s), plain = dial(s);
	json_t *p = json_pack("{s:i}", "n", 7), *j;

	assert_int_equal(varlink_stream_count(s->server, 3), 2);
	assert_int_equal(varlink_stream_count(s->server, 4), 0);
	varlink_stream_publish(s->server, 4, p);
	varlink_stream_publish(s->server, 3, p);
	for (unsigned i = 0; i < 2; i++) {
		j = get(s, i ? b : a);
		assert_true(json_is_true(json_object_get(j, "continues")));
		assert_int_equal(
			json_integer_value(json_object_get(json_object_get(j, "parameters"), "n")),
			7);
		json_decref(j);
	}
	assert_works(s, plain);
	/* a call behind a stream waits for its end, which does not come */
	const char late[] = "{\"method\":\"org.test.Echo\",\"parameters\":{\"text\":\"late\"}}";
	put(s, a, late, sizeof(late));
	turn_for(s, 20);
	varlink_stream_publish(s->server, 3, p);
	j = get(s, a);
	assert_true(json_is_true(json_object_get(j, "continues")));
	json_decref(j);
	close(a);
	turn_for(s, 20);
	assert_int_equal(varlink_stream_count(s->server, 3), 1);
	/* only a stream method may start a stream, and only the call that asked */
	j = call(s, plain, "{\"method\":\"org.test.Sneak\",\"more\":true}");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(j, "parameters"), "result")),
		-EINVAL);
	assert_null(json_object_get(j, "continues"));
	json_decref(j);
	assert_int_equal(varlink_stream_count(s->server, 3), 1);
	json_decref(p);
	close(b);
	close(plain);
	turn_for(s, 20);
	assert_int_equal(varlink_stream_count(s->server, 3), 0);
}

/* A subscriber that does not read is dropped at its limit; one that reads
 * loses nothing. */
static void slow_subscriber(void **state)
{
	struct state *s = *state;
	int slow = subscribe(s), good = subscribe(s);
	char *text = malloc(700 * 1024);
	json_t *p;
	unsigned sent = 0;

	memset(text, 'y', 700 * 1024);
	p = json_pack("{s:s%}", "text", text, (size_t)700 * 1024);
	while (varlink_stream_count(s->server, 3) == 2) {
		json_t *j;

		varlink_stream_publish(s->server, 3, p);
		sent++;
		j = get(s, good);
		assert_non_null(j);
		json_decref(j);
		assert_true(sent < 10);
	}
	assert_in_range(sent, 4, 8);
	turn_for(s, 20);
	assert_int_equal(varlink_client_count(s->server), 1);
	json_decref(p);
	free(text);
	close(slow);
	close(good);
}

/* The sum over all clients has a limit of its own. */
static void total_output(void **state)
{
	struct state *s = *state;
	int fd[8];
	char *text = malloc(3 * 1024 * 1024);
	json_t *p;

	for (unsigned i = 0; i < ELEMENTSOF(fd); i++)
		fd[i] = subscribe(s);
	memset(text, 'z', 3 * 1024 * 1024);
	p = json_pack("{s:s%}", "text", text, (size_t)3 * 1024 * 1024);
	varlink_stream_publish(s->server, 3, p);
	assert_in_range(varlink_stream_count(s->server, 3), 5, 6);
	turn_for(s, 20);
	assert_int_equal(varlink_client_count(s->server), varlink_stream_count(s->server, 3));
	for (unsigned i = 0; i < ELEMENTSOF(fd); i++)
		close(fd[i]);
	json_decref(p);
	free(text);
}

/* No descriptor for a new client: the loop rests instead of spinning, and the
 * client is served when there is one again. */
static void out_of_descriptors(void **state)
{
	struct state *s = *state;
	int waiting, spare[256], n = 0;
	struct rlimit old, low;
	struct rusage before, after;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	waiting = dial(s);
	low = old;
	low.rlim_cur = 128;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	while (n < 256 && (spare[n] = dup(waiting)) >= 0)
		n++;
	assert_in_range(n, 1, 255);
	getrusage(RUSAGE_SELF, &before);
	turn(s);
	event_base_loopexit(s->base, &(struct timeval){0, 500000});
	event_base_dispatch(s->base);
	getrusage(RUSAGE_SELF, &after);
	assert_int_equal(varlink_client_count(s->server), 0);
	assert_in_range((after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 +
				after.ru_utime.tv_usec - before.ru_utime.tv_usec +
				(after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 +
				after.ru_stime.tv_usec - before.ru_stime.tv_usec,
		0, 100000);
	while (n > 0)
		close(spare[--n]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_works(s, waiting);
	close(waiting);
}

static void socket_path(void **state)
{
	struct state *s = *state;
	struct varlink_server *second = NULL;
	char path[200];
	int fd;

	/* the one that runs is left alone */
	assert_int_equal(varlink_server_new(s->base, s->path, &info, &second), -EADDRINUSE);
	assert_null(second);
	fd = dial(s);
	assert_works(s, fd);
	close(fd);

	/* a socket that a killed process left behind is replaced */
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	snprintf(path, sizeof(path), "%s/stale", s->dir);
	strcpy(a.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(fd);
	assert_int_equal(varlink_server_new(s->base, path, &info, &second), 0);
	/* and not removed by us when somebody else has put his own there */
	assert_int_equal(unlink(path), 0);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	varlink_server_free(second);
	second = NULL;
	assert_int_equal(access(path, F_OK), 0);
	/* something that is no socket is nobody's to remove */
	assert_int_equal(varlink_server_new(s->base, path, &info, &second), -EEXIST);
	assert_int_equal(unlink(path), 0);

	memset(path, 'x', 150);
	path[150] = '\0';
	assert_int_equal(varlink_server_new(s->base, path, &info, &second), -ENAMETOOLONG);
	snprintf(path, sizeof(path), "%s/no/such", s->dir);
	assert_int_equal(varlink_server_new(s->base, path, &info, &second), -ENOENT);
	assert_null(second);
}

/* Numbers are printed short, and a reply is one message with one NUL. */

#define SERVER_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SERVER_TEST(fairness),
		SERVER_TEST(slow_client),
		SERVER_TEST(reply_too_large),
		SERVER_TEST(stream),
		SERVER_TEST(slow_subscriber),
		SERVER_TEST(total_output),
		SERVER_TEST(out_of_descriptors),
		SERVER_TEST(socket_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
