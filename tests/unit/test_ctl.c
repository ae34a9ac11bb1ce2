/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Every verb of mthpctl against a server that answers what the test tells it to. */
#include "ctl_world.h"

static void quoting_for_bash(void **state)
{
	struct service *s = *state;
	char name[256], command[256], bytes[1024], *q;
	FILE *f;

	if (access("/bin/bash", X_OK) < 0)
		skip();
	for (int i = 0; i < 255; i++)
		name[i] = (char)(i + 1);
	name[255] = '\0';
	q = ctl_quote(name);
	f = fopen(s->path, "we");
	assert_non_null(f);
	fprintf(f, "printf %%s %s\n", q);
	fclose(f);
	free(q);
	snprintf(command, sizeof(command), "LC_ALL=C /bin/bash %s", s->path);
	f = popen(command, "re");
	assert_non_null(f);
	assert_int_equal(fread(bytes, 1, sizeof(bytes), f), 255);
	assert_memory_equal(bytes, name, 255);
	assert_int_equal(pclose(f), 0);
}

static void status_verb(void **state)
{
	struct service *s = *state;
	json_t *j = load("active"), *wrapped = json_pack("{s:O}", "status", j);
	char *bytes = json_dumps(wrapped, 0), *expected = json_dumps(j, 0);

	answers[STATUS].parameters = bytes;
	start(s);
	assert_int_equal(RUN(s, "status"), CTL_OK);
	assert_string_equal(out_text, read_file("tests/fixtures/status-active.txt"));
	assert_string_equal(err_text, "");
	assert_int_equal(RUN(s, "--json", "status"), CTL_OK);
	assert_json_output(expected);
	assert_non_null(strstr(out_text, "app-gnome-firefox\\\\x2dw-96379.scope"));
	assert_int_equal(RUN(s, "status", "--json"), CTL_OK);
	assert_json_output(expected);
	assert_int_equal(RUN(s, "status", "-n", "1"), CTL_OK);
	assert_non_null(strstr(out_text, "and 7 more"));
	free(bytes);
	free(expected);
	json_decref(wrapped);
	json_decref(j);
}

/* As JSON, too, nothing reaches the terminal that it would obey. */
static void hostile_json(void **state)
{
	struct service *s = *state;
	json_t *j = load("hostile"), *wrapped = json_pack("{s:O}", "status", j);
	char *bytes = json_dumps(wrapped, 0);

	answers[STATUS].parameters = bytes;
	answers[HISTORY].parameters =
		"{\"decisions\":[{\"cgroup\":\"a\\u001b[2J\",\"knob\":\"k\\u001b\"},7]}";
	answers[FEATURES].parameters = "{\"features\":{\"a\\u001b\":\"b\\u009b\",\"l\":[\"x\\n\"],"
				       "\"o\":{\"o\":{\"o\":{\"o\":{\"o\":{}}}}}}}";
	answers[VERIFY].parameters =
		"{\"ok\":false,\"differences\":[{\"path\":\"p\\u001b\",\"why\":\"\\u0007\"},null]}";
	answers[RELOAD].error = "org.mthpd1.Bad\x1b";
	answers[RELOAD].parameters = "{\"message\":\"\\u001b[31m\\n\"}";
	start(s);
	assert_int_equal(RUN(s, "status", "--json"), CTL_OK);
	for (const char *p = out_text; *p; p++)
		assert_true(*p == '\n' || (*p >= 0x20 && *p < 0x7f));
	assert_int_equal(RUN(s, "history"), CTL_OK);
	assert_harmless(out_text);
	assert_int_equal(RUN(s, "features"), CTL_OK);
	assert_harmless(out_text);
	assert_int_equal(RUN(s, "verify"), CTL_NO);
	assert_harmless(out_text);
	assert_int_equal(RUN(s, "reload"), CTL_NO);
	assert_harmless(err_text);
	free(bytes);
	json_decref(wrapped);
	json_decref(j);
}

static void verify_verb(void **state)
{
	struct service *s = *state;

	answers[VERIFY].parameters = "{\"ok\":true,\"differences\":[]}";
	start(s);
	assert_int_equal(RUN(s, "verify"), CTL_OK);
	assert_string_equal(out_text, "All values are as wanted.\n");
	stop(s);
	answers[VERIFY].parameters = "{\"ok\":false,\"differences\":[{\"path\":\"hugepages-64kB/"
				     "enabled\",\"wanted\":\"never\","
				     "\"actual\":\"always\",\"why\":\"read-only\"},{\"path\":"
				     "\"khugepaged/max_ptes_none\","
				     "\"wanted\":0,\"actual\":511}]}";
	start(s);
	assert_int_equal(RUN(s, "verify"), CTL_NO);
	assert_string_equal(out_text,
		"hugepages-64kB/enabled: wanted never, actual always (read-only)\n"
		"khugepaged/max_ptes_none: wanted 0, actual 511\n");
	assert_int_equal(RUN(s, "verify", "--json"), CTL_NO);
	assert_json_output(answers[VERIFY].parameters);
	stop(s);
	/* an answer that does not say is not a yes */
	answers[VERIFY].parameters = "{\"ok\":true}";
	start(s);
	assert_int_equal(RUN(s, "verify"), CTL_NO);
	stop(s);
	answers[VERIFY].parameters = "{\"ok\":\"true\",\"differences\":[]}";
	start(s);
	assert_int_equal(RUN(s, "verify"), CTL_NO);
}

static void history_verb(void **state)
{
	struct service *s = *state;

	setenv("TZ", "UTC", 1);
	tzset();
	answers[HISTORY].parameters =
		"{\"decisions\":[{\"number\":2,\"realtime_usec\":1764536400000000,"
		"\"knob\":\"hugepages-64kB/enabled\",\"old\":\"always\",\"new\":\"never\","
		"\"reason\":\"drop-pressure\",\"cgroup\":\"system.slice/web.service\","
		"\"outcome\":\"written\",\"some\":0.712,\"full\":0.4,\"margin_bytes\":1310720},"
		"{\"realtime_usec\":1764536399000000,\"knob\":\"defrag\",\"old\":\"defer\","
		"\"new\":\"never\",\"reason\":\"fragmentation\",\"cgroup\":null,"
		"\"outcome\":\"dry-run\",\"some\":null,\"full\":null,\"margin_bytes\":null}]}";
	start(s);
	assert_int_equal(RUN(s, "history", "-n", "5"), CTL_OK);
	assert_string_equal(out_text,
		"2025-11-30 21:00:00  hugepages-64kB/enabled always -> never  drop-pressure\n"
		"    system.slice/web.service: some 71.2%, full 40.0%, margin 1.2M\n"
		"2025-11-30 20:59:59  defrag defer -> never  fragmentation  [dry-run]\n"
		"    the whole machine: some -, full -, margin -\n");
	assert_int_equal(RUN(s, "history", "--json"), CTL_OK);
	assert_json_output(answers[HISTORY].parameters);
	stop(s);
	answers[HISTORY].parameters = "{\"decisions\":[]}";
	start(s);
	assert_int_equal(RUN(s, "history"), CTL_OK);
	assert_string_equal(out_text, "No decisions yet.\n");
}

static void features_verb(void **state)
{
	struct service *s = *state;

	answers[FEATURES].parameters =
		"{\"features\":{\"cgroup\":\"v2\",\"per_size\":true,\"pmd_kb\":2048,"
		"\"boot_option\":null,\"sizes_kb\":[16,64],\"ours\":{\"margin\":false}}}";
	start(s);
	assert_int_equal(RUN(s, "features"), CTL_OK);
	assert_string_equal(out_text, "cgroup                v2\n"
				      "per_size              yes\n"
				      "pmd_kb                2048\n"
				      "boot_option           -\n"
				      "sizes_kb              16, 64\n"
				      "ours                  \n"
				      "  margin                no\n");
	assert_int_equal(RUN(s, "features", "--json"), CTL_OK);
	assert_json_output(
		"{\"cgroup\":\"v2\",\"per_size\":true,\"pmd_kb\":2048,"
		"\"boot_option\":null,\"sizes_kb\":[16,64],\"ours\":{\"margin\":false}}");
}

static void explain_verb(void **state)
{
	struct service *s = *state;
	static const struct {
		const char *argument, *sent;
	} cases[] = {
		{"known/group", "{\"cgroup\":\"known/group\"}\n"},
		{"/known/group", "{\"cgroup\":\"known/group\"}\n"},
		{"/sys/fs/cgroup/known/group", "{\"cgroup\":\"known/group\"}\n"},
		{"/sys/fs/cgroup", "{\"cgroup\":\"\"}\n"},
		{"/", "{\"cgroup\":\"\"}\n"},
	};

	start(s);
	assert_int_equal(RUN(s, "explain"), CTL_OK);
	assert_string_equal(out_text, "{}\n");
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		assert_int_equal(RUN(s, "explain", cases[i].argument), CTL_OK);
		assert_string_equal(out_text, cases[i].sent);
	}
	assert_int_equal(RUN(s, "explain", "--", "-.slice"), CTL_OK);
	assert_string_equal(out_text, "{\"cgroup\":\"-.slice\"}\n");
	assert_int_equal(RUN(s, "explain", "no/such"), CTL_NO);
	assert_string_equal(err_text, "mthpctl: explain: mthpd watches no group of this name: no/such\n");
	assert_int_equal(RUN(s, "explain", "a\xff"), CTL_USAGE);
	assert_string_equal(err_text, "mthpctl: explain: not valid UTF-8: a\\xff\n");
	assert_int_equal(RUN(s, "explain", "--json"), CTL_OK);
	assert_json_output("{\"text\":\"{}\",\"facts\":{},\"cookie\":7}");
}

/* The process's group is not known to the daemon: the nearest one above is
 * asked for, here the root. */
static void explain_pid(void **state)
{
	struct service *s = *state;
	char pid[16], path[PATH_MAX], cgroup[16384];
	bool v2;

	start(s);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	assert_true(parse_read_at(AT_FDCWD, "/proc/self/cgroup", cgroup, sizeof(cgroup)) >= 0);
	v2 = parse_proc_cgroup(cgroup, path, sizeof(path)) == 0;
	assert_int_equal(RUN(s, "explain", "--pid", pid), v2 ? CTL_OK : CTL_NO);
	if (v2)
		assert_string_equal(out_text, "{\"cgroup\":\"\"}\n");
	else
		assert_non_null(strstr(err_text, "in no cgroup of version 2"));
	assert_int_equal(RUN(s, "explain", "--pid=2147483647"), CTL_NO);
	assert_non_null(strstr(err_text, "no such process"));
	assert_int_equal(RUN(s, "explain", "--pid=0"), CTL_USAGE);
	assert_int_equal(RUN(s, "explain", "--pid=self"), CTL_USAGE);
	assert_int_equal(RUN(s, "explain", "--pid=1", "known/group"), CTL_USAGE);
}

static void changing_verbs(void **state)
{
	struct service *s = *state;

	start(s);
	assert_int_equal(RUN(s, "reload"), CTL_OK);
	assert_string_equal(out_text, "The configuration was read again.\n");
	assert_int_equal(RUN(s, "restore"), CTL_OK);
	assert_int_equal(RUN(s, "hold", "because"), CTL_OK);
	assert_string_equal(out_text, "Held; mthpctl release 7 ends that.\n");
	assert_int_equal(RUN(s, "--json", "hold", "because"), CTL_OK);
	assert_json_output(
		"{\"text\":\"{\\\"reason\\\":\\\"because\\\"}\",\"facts\":{},\"cookie\":7}");
	assert_int_equal(RUN(s, "hold", "\xc3"), CTL_USAGE);
	assert_int_equal(RUN(s, "release", "x"), CTL_USAGE);
	assert_int_equal(RUN(s, "release", "-1"), CTL_USAGE);
	assert_int_equal(RUN(s, "release", ""), CTL_USAGE);
	assert_int_equal(RUN(s, "release", "99999999999999999999"), CTL_USAGE);
	if (geteuid() == 0) {
		assert_int_equal(RUN(s, "release", "7", "--json"), CTL_OK);
		assert_json_output("{\"text\":\"{\\\"cookie\\\":7}\",\"facts\":{},\"cookie\":7}");
		assert_int_equal(RUN(s, "release", "--json"), CTL_OK);
		assert_json_output("{\"text\":\"{}\",\"facts\":{},\"cookie\":7}");
		assert_int_equal(seteuid(NOBODY), 0);
	}
	assert_int_equal(RUN(s, "release"), CTL_NOT_PERMITTED);
	assert_string_equal(out_text, "");
	assert_string_equal(err_text, "mthpctl: release: only root may do this\n");
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
}

/* A verb that this daemon does not have never claims success; nor does one that
 * the daemon refused. */
static void refusals(void **state)
{
	struct service *s = *state;

	answers[RELOAD].error = "org.mthpd1.BadConfiguration";
	answers[RELOAD].parameters = "{\"message\":\"mthpd.conf:3: unknown key\"}";
	answers[RESTORE].error = "org.mthpd1.RestoreIncomplete";
	answers[RESTORE].parameters = "{\"failures\":2}";
	start(s);
	assert_int_equal(RUN(s, "metrics"), CTL_NO);
	assert_string_equal(out_text, "");
	assert_string_equal(err_text,
		"mthpctl: metrics: this mthpd does not know how (it has no org.mthpd1.Metrics)\n");
	assert_int_equal(RUN(s, "--json", "metrics"), CTL_NO);
	assert_string_equal(out_text, "");
	assert_int_equal(RUN(s, "reload"), CTL_NO);
	assert_string_equal(err_text, "mthpctl: reload: the old configuration stands: "
				      "mthpd.conf:3: unknown key\n");
	assert_int_equal(RUN(s, "restore"), CTL_NO);
	assert_string_equal(out_text, "");
	assert_string_equal(
		err_text, "mthpctl: restore: 2 values could not be put back, the log names them\n");
	assert_int_equal(RUN(s, "status"), CTL_NO);
	assert_string_equal(err_text, "mthpctl: status: the answer has no usable \"status\"\n");
	assert_int_equal(RUN(s, "history"), CTL_NO);
	assert_int_equal(RUN(s, "features"), CTL_NO);
}

static void usage(void **state)
{
	static const char *const faults[][4] = {
		{NULL},
		{"nonsense"},
		{"--nonsense", "status"},
		{"status", "more"},
		{"-n"},
		{"status", "-n", "x"},
		{"status", "-n", "-1"},
		{"status", "--pid=1"},
		{"verify", "-n", "1"},
		{"explain", "a", "b"},
		{"-x", "status"},
		{"--pid"},
		{"status", "--json=yes"},
		{"status", "-n", "99999999999"},
	};
	struct service *s = *state;

	for (size_t i = 0; i < ELEMENTSOF(faults); i++) {
		const char *args[5] = {
			faults[i][0], faults[i][1], faults[i][2], faults[i][3], NULL};

		assert_int_equal(run_at(s->path, args), CTL_USAGE);
		assert_string_equal(out_text, "");
		assert_non_null(strstr(err_text, "mthpctl --help"));
	}
	assert_int_equal(RUN(s, "--help"), CTL_OK);
	assert_harmless(out_text);
	assert_non_null(strstr(out_text, "check-config [FILE]"));
	assert_int_equal(RUN(s, "--version"), CTL_OK);
	assert_string_equal(out_text, "mthpctl " MTHPD_VERSION "\n");
}

/* ---- a daemon that is not there, or not well ---- */

static void nobody_listens(void **state)
{
	struct service *s = *state;
	char path[256];
	int fd;

	assert_int_equal(RUN(s, "status"), CTL_UNREACHABLE);
	assert_non_null(strstr(err_text, "mthpd is not running"));
	assert_string_equal(out_text, "");
	/* a socket that nobody serves any more */
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	strcpy(a.sun_path, s->path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(fd);
	assert_int_equal(RUN(s, "status"), CTL_UNREACHABLE);
	memset(path, 'x', 150);
	path[150] = '\0';
	assert_int_equal(run_at(path, (const char *const[]){"status", NULL}), CTL_UNREACHABLE);
	assert_non_null(strstr(err_text, "File name too long"));
	if (geteuid() == 0) {
		assert_int_equal(chmod(s->dir, 0700), 0);
		assert_int_equal(seteuid(NOBODY), 0);
		assert_int_equal(RUN(s, "status"), CTL_NOT_PERMITTED);
		assert_int_equal(seteuid(0), 0);
	}
}

/* A listener that answers each call with @bytes, then hangs up or stays. */
static void start_raw(struct service *s, const char *bytes, size_t len, bool stay)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(a.sun_path, s->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 5), 0);
	s->pid = fork();
	if (s->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;) {
			char buf[4096];
			int c = accept(fd, NULL, NULL);

			(void)!read(c, buf, sizeof(buf));
			(void)!send(c, bytes, len, MSG_NOSIGNAL);
			if (!stay)
				close(c);
		}
	}
	close(fd);
}

static int call_raw(struct service *s, const char *bytes, size_t len, bool stay, int msec)
{
	struct ctl_reply r;
	int code;

	start_raw(s, bytes, len, stay);
	code = ctl_call(s->path, "a.b", json_object(), msec, &r);
	if (code == 0)
		ctl_reply_done(&r);
	stop(s);
	return code;
}

static void odd_servers(void **state)
{
	struct service *s = *state;
	char *much = calloc(1, CTL_REPLY_BYTES_MAX + 200000);
	struct ctl_reply r;

	/* sizeof: a string's own NUL ends the message; without it, half a message */
#define WHOLE(text, stay) call_raw(s, text, sizeof(text), stay, 20000)
#define HALF(text, stay, msec) call_raw(s, text, sizeof(text) - 1, stay, msec)
	assert_int_equal(HALF("", false, 20000), -ECONNRESET);
	assert_int_equal(HALF("{\"parameters\":{}}", false, 20000), -ECONNRESET);
	assert_int_equal(HALF("", true, 300), -ETIMEDOUT);
	assert_int_equal(HALF("{\"parameters\":{}}", true, 300), -ETIMEDOUT);
	assert_int_equal(WHOLE("HTTP/1.1 200 OK\r\n", true), -EPROTO);
	assert_int_equal(WHOLE("", true), -EPROTO);
	assert_int_equal(WHOLE("[]", true), -EPROTO);
	assert_int_equal(WHOLE("{\"parameters\":[]}", true), -EPROTO);
	assert_int_equal(WHOLE("{\"error\":7}", true), -EPROTO);
	assert_int_equal(WHOLE("{\"parameters\":{\"a\":\"\xff\"}}", true), -EPROTO);
	assert_int_equal(WHOLE("{}", true), 0);
	assert_int_equal(HALF("{\"parameters\":{}}\0{\"more", true, 20000), 0);
	memset(much, ' ', CTL_REPLY_BYTES_MAX + 200000);
	start_raw(s, much, CTL_REPLY_BYTES_MAX + 200000, true);
	assert_int_equal(ctl_call(s->path, "a.b", NULL, 20000, &r), -EMSGSIZE);
	stop(s);
	free(much);

	start_raw(s, "SSH-2.0\n", 9, true);
	assert_int_equal(RUN(s, "status"), CTL_UNREACHABLE);
	assert_non_null(strstr(err_text, "does not speak varlink"));
	stop(s);
	start_raw(s, "", 0, false);
	assert_int_equal(RUN(s, "status"), CTL_UNREACHABLE);
}

/* A full daemon says so. */
static void full_server(void **state)
{
	struct service *s = *state;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd[VARLINK_CLIENTS_MAX];

	start(s);
	strcpy(a.sun_path, s->path);
	for (unsigned i = 0; i < ELEMENTSOF(fd); i++) {
		fd[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(fd[i], (struct sockaddr *)&a, sizeof(a)), 0);
	}
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(RUN(s, "status"), CTL_NO);
	assert_string_equal(err_text, "mthpctl: status: mthpd has as many clients as it takes; try again\n");
	for (unsigned i = 0; i < ELEMENTSOF(fd); i++)
		close(fd[i]);
}

/* ---- check-config ---- */

static void check_config(void **state)
{
	struct service *s = *state;
	char path[256], expected[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/test.conf", s->dir);
	f = fopen(path, "we");
	fputs("[Limits]\nMaxMode=inherit\n", f);
	fclose(f);
	assert_int_equal(RUN(s, "check-config", path), CTL_OK);
	assert_string_equal(out_text, "No faults.\n");
	assert_int_equal(RUN(s, "--json", "check-config", path), CTL_OK);
	assert_json_output("{\"ok\":true,\"faults\":[]}");
	f = fopen(path, "we");
	fputs("[Limits]\nMaxMode=inherit\nMaxMood=always\n", f);
	fclose(f);
	assert_int_equal(RUN(s, "check-config", path), CTL_NO);
	snprintf(expected, sizeof(expected), "%s:3: ", path);
	assert_int_equal(strncmp(out_text, expected, strlen(expected)), 0);
	assert_int_equal(RUN(s, "--json", "check-config", path), CTL_NO);
	json_t *j = json_loads(out_text, 0, NULL);
	json_t *fault = json_array_get(json_object_get(j, "faults"), 0);
	assert_true(json_is_false(json_object_get(j, "ok")));
	assert_int_equal(json_array_size(json_object_get(j, "faults")), 1);
	assert_int_equal(json_integer_value(json_object_get(fault, "line")), 3);
	assert_string_equal(json_string_value(json_object_get(fault, "file")), path);
	json_decref(j);
	unlink(path);
	assert_int_equal(RUN(s, "check-config", path), CTL_NO);
	assert_int_equal(strncmp(out_text, path, strlen(path)), 0);
}

#define CTL_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CTL_TEST(quoting_for_bash),
		CTL_TEST(status_verb),
		CTL_TEST(hostile_json),
		CTL_TEST(verify_verb),
		CTL_TEST(history_verb),
		CTL_TEST(features_verb),
		CTL_TEST(explain_verb),
		CTL_TEST(explain_pid),
		CTL_TEST(changing_verbs),
		CTL_TEST(refusals),
		CTL_TEST(usage),
		CTL_TEST(nobody_listens),
		CTL_TEST(odd_servers),
		CTL_TEST(full_server),
		CTL_TEST(check_config),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	free(out_text);
	free(err_text);
	return failed;
}
