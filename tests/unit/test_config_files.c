/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Files as a configuration: drop-ins, what is no file, and the shipped ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "cleanup.h"
#include "config.h"
#include "config_faults.h"

static void cleanup_config(struct config **c)
{
	config_free(*c);
}

#define _cleanup_config_ __attribute__((cleanup(cleanup_config)))

/* A directory of its own for each test. */
struct tree {
	char root[32];
};

static int setup(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));

	strcpy(t->root, "/tmp/mthpd-config-XXXXXX");
	*state = t;
	return mkdtemp(t->root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	struct tree *t = *state;
	int r = nftw(t->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);

	free(t);
	return r;
}

/* The path of a name in the tree, its directories made. */
static char *in_tree(const struct tree *t, const char *name)
{
	char *path;

	assert_true(asprintf(&path, "%s/%s", t->root, name) > 0);
	for (char *s = path + strlen(t->root) + 1; (s = strchr(s, '/')); s++) {
		*s = '\0';
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
		*s = '/';
	}
	return path;
}

static void put(const struct tree *t, const char *name, const char *text)
{
	_cleanup_free_ char *path = in_tree(t, name);
	_cleanup_fclose_ FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
}

static void put_link(const struct tree *t, const char *name, const char *target)
{
	_cleanup_free_ char *path = in_tree(t, name);

	assert_int_equal(symlink(target, path), 0);
}

static struct config *load_tree(const struct tree *t)
{
	struct config *c = NULL;
	struct faults f = {0};

	if (config_load(NULL, t->root, collect_fault, &f, &c) != 0)
		fail_msg("%s", f.text);
	return c;
}

/* The faults of a tree, or of an explicit file in it, with the root left out. */
static const char *faults_of(const struct tree *t, const char *explicit_file)
{
	static struct faults f;
	_cleanup_free_ char *file = explicit_file ? in_tree(t, explicit_file) : NULL;
	struct config *c = (struct config *)&f;

	f = (struct faults){.strip = t->root};
	assert_int_equal(config_load(file, file ? NULL : t->root, collect_fault, &f, &c), -EINVAL);
	assert_ptr_equal(c, &f);
	return f.text;
}

#define MAIN "etc/mthpd/mthpd.conf"
#define ETC "etc/mthpd/mthpd.conf.d/"
#define RUN "run/mthpd/mthpd.conf.d/"
#define USR "usr/lib/mthpd/mthpd.conf.d/"

static void test_nothing_at_all(void **state)
{
	_cleanup_config_ struct config *c = load_tree(*state);

	assert_int_equal(c->interval_usec, 1000000);
	assert_int_equal(c->n_files, 0);
}

static void test_drop_ins_by_name_over_all_directories(void **state)
{
	struct tree *t = *state;
	_cleanup_config_ struct config *c = NULL;

	put(t, MAIN,
		"[Daemon]\nInterval=2s\nAuditInterval=2s\n[Policy \"w\"]\nMatch=main\nWeight=1\n");
	put(t, ETC "10-a.conf", "[Daemon]\nInterval=10s\n[Policy \"w\"]\nMatch=ten\n");
	put(t, RUN "30-c.conf", "[Daemon]\nInterval=30s\n[Policy \"w\"]\nWeight=30\n");
	put(t, USR "20-b.conf",
		"[Daemon]\nInterval=20s\nPsiWindow=4s\n[Policy \"w\"]\nWeight=20\n");
	c = load_tree(t);
	assert_int_equal(c->interval_usec, 30000000);
	assert_int_equal(c->psi_window_usec, 4000000);
	assert_int_equal(c->audit_usec, 2000000);
	assert_int_equal(c->n_policies, 1);
	assert_int_equal(c->policies[0].weight, 30);
	assert_int_equal(c->policies[0].n_match, 2);
	assert_string_equal(c->policies[0].file + strlen(t->root) + 1, MAIN);
	assert_int_equal(c->policies[0].line, 4);
}

static void test_same_name_overrides(void **state)
{
	struct tree *t = *state;
	_cleanup_config_ struct config *c = NULL;

	put(t, USR "50.conf", "[Daemon]\nInterval=3s\nPsiWindow=3s\n");
	put(t, RUN "50.conf", "[Daemon]\nInterval=4s\n");
	put(t, USR "60.conf", "[Daemon]\nAuditInterval=3s\n");
	put(t, RUN "60.conf", "[Daemon]\nAuditInterval=4s\n");
	put(t, ETC "60.conf", "[Daemon]\nAuditInterval=5s\n");
	c = load_tree(t);
	assert_int_equal(c->interval_usec, 4000000);
	assert_int_equal(c->psi_window_usec, 2000000);
	assert_int_equal(c->audit_usec, 5000000);
}

static void test_null_masks(void **state)
{
	struct tree *t = *state;
	_cleanup_config_ struct config *c = NULL;

	put(t, USR "50.conf", "[Daemon]\nInterval=broken\n");
	put_link(t, ETC "50.conf", "/dev/null");
	put(t, RUN "60.conf", "[Daemon]\nInterval=6s\n");
	put(t, ETC "60.conf", "");
	put_link(t, MAIN, "/dev/null");
	c = load_tree(t);
	assert_int_equal(c->interval_usec, 1000000);
}

static void test_other_names_are_left_alone(void **state)
{
	static const char *const names[] = {ETC "a.conf~", ETC ".a.conf", ETC "a.conf.dpkg-new",
		ETC "README", ETC ".conf", ETC "aconf", ETC "sub/a.conf"};
	struct tree *t = *state;

	for (size_t i = 0; i < ELEMENTSOF(names); i++)
		put(t, names[i], "nonsense\n");
	config_free(load_tree(t));
}

static void test_explicit_file_alone(void **state)
{
	struct tree *t = *state;
	_cleanup_free_ char *file = in_tree(t, "my.conf");
	_cleanup_config_ struct config *c = NULL;

	put(t, MAIN, "nonsense\n");
	put(t, ETC "a.conf", "nonsense\n");
	put(t, "my.conf", "[Daemon]\nInterval=2s\nPsiWindow=4s\n");
	put(t, "my.conf.d/b.conf", "[Daemon]\nInterval=3s\n");
	assert_int_equal(config_load(file, "", NULL, NULL, &c), 0);
	assert_int_equal(c->interval_usec, 3000000);
	assert_int_equal(c->psi_window_usec, 4000000);
}

static void test_null_as_explicit_file(void **state)
{
	_cleanup_config_ struct config *c = NULL;

	(void)state;
	assert_int_equal(config_load("/dev/null", "", NULL, NULL, &c), 0);
	assert_int_equal(c->interval_usec, 1000000);
}

static void test_faults_of_all_files_in_one_pass(void **state)
{
	struct tree *t = *state;

	put(t, MAIN, "[Daemon]\nInterval=1x\n[Controller]\nPressureLow=9%\n");
	put(t, USR "a.conf", "[Limits]\nDefrag=2\n\n[Policy \"p\"]\n");
	put(t, ETC "b.conf", "\n[Controller]\nPressureHigh=8%\nFoo=1\n");
	assert_string_equal(faults_of(t, NULL),
		"/" MAIN
		":2: Interval=1x: not a duration; write a number and us, ms, s, min, h or d "
		"(a number alone is seconds)\n"
		"/" USR "a.conf:2: Defrag=2: write yes or no\n"
		"/" ETC "b.conf:4: unknown key 'Foo' in [Controller], which takes PressureHigh, "
		"PressureLow, DropGain, Hold, Settle, Density, SmallGroup, MaxChangesPerHour\n"
		"/" ETC
		"b.conf:3: PressureLow (9%) is above PressureHigh (8%); lower the one or raise "
		"the other\n"
		"/" USR "a.conf:4: policy \"p\" has no Match=, so it applies to nothing; name its "
		"cgroups, such as Match=system.slice/*\n");
}

/* A section does not reach into the next file. */
static void test_section_ends_with_its_file(void **state)
{
	struct tree *t = *state;

	put(t, MAIN, "[Daemon]\n");
	put(t, ETC "a.conf", "Interval=1s\n");
	assert_string_equal(faults_of(t, NULL), "/" ETC "a.conf:1: 'Interval' stands before any "
						"section; put a line [Daemon] above it\n");
}

static void test_what_is_no_file(void **state)
{
	struct tree *t = *state;
	_cleanup_free_ char *fifo = in_tree(t, ETC "b.conf");
	_cleanup_free_ char *directory = in_tree(t, MAIN "/");

	assert_int_equal(mkfifo(fifo, 0644), 0);
	put_link(t, ETC "c.conf", "nowhere");
	put_link(t, ETC "d.conf", "d.conf");
	put(t, "run/mthpd/mthpd.conf.d", "a file in place of a directory");
	assert_string_equal(faults_of(t, NULL),
		"/" MAIN ":0: is a directory; a file is wanted here\n"
		"/run/mthpd/mthpd.conf.d:0: cannot be listed: Not a directory\n"
		"/" ETC "b.conf:0: is not a regular file; put the configuration into one\n"
		"/" ETC "c.conf:0: does not exist; create it, or correct the name or the link\n"
		"/" ETC "d.conf:0: cannot be opened: Too many levels of symbolic links\n");
}

static void test_missing_explicit_file(void **state)
{
	assert_string_equal(faults_of(*state, "no.conf"),
		"/no.conf:0: does not exist; create it, or correct the name or the link\n");
}

static void test_unreadable_file(void **state)
{
	struct tree *t = *state;
	_cleanup_free_ char *path = in_tree(t, "my.conf");

	put(t, "my.conf", "[Daemon]\n");
	/* Mode 0 stops everybody but root, whom only another user id stops. */
	assert_int_equal(chmod(path, 0), 0);
	assert_int_equal(chmod(t->root, 0755), 0);
	if (geteuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	assert_string_equal(
		faults_of(t, "my.conf"), "/my.conf:0: cannot be opened: Permission denied\n");
	assert_int_equal(seteuid(getuid()), 0);
}

static void test_file_size_limit(void **state)
{
	struct tree *t = *state;
	_cleanup_free_ char *text = malloc(CONFIG_FILE_BYTES_MAX + 2);

	memset(text, '\n', CONFIG_FILE_BYTES_MAX + 1);
	text[CONFIG_FILE_BYTES_MAX] = '\0';
	put(t, MAIN, text);
	config_free(load_tree(t));
	text[CONFIG_FILE_BYTES_MAX] = '\n';
	text[CONFIG_FILE_BYTES_MAX + 1] = '\0';
	put(t, MAIN, text);
	assert_string_equal(faults_of(t, NULL),
		"/" MAIN ":0: is larger than 256 KiB; split it into "
		"drop-ins, or check that it is a configuration at all\n");
}

static void test_number_of_files_limit(void **state)
{
	struct tree *t = *state;
	char name[64];
	const char *faults;

	for (unsigned i = 0; i < CONFIG_FILES_MAX; i++) {
		snprintf(name, sizeof(name), ETC "%03u.conf", i);
		put(t, name, "");
	}
	config_free(load_tree(t));
	put(t, MAIN, "");
	faults = faults_of(t, NULL);
	assert_string_equal(
		faults, "/" ETC "255.conf:0: is one too many; at most 256 files are read\n");
	put(t, ETC "256.conf", "");
	assert_non_null(strstr(faults_of(t, NULL), "holds too many drop-ins; at most 256"));
}

/* The shipped files; tests run in the root of the repository. */

static char *slurp(const char *path)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char *text = calloc(1, CONFIG_FILE_BYTES_MAX);

	if (!f)
		fail_msg("%s: %s", path, strerror(errno));
	assert_true(fread(text, 1, CONFIG_FILE_BYTES_MAX - 1, f) > 0);
	return text;
}

/* "#Key=value" is a key that is commented out, "# words" is prose. */
static bool is_commented_line(const char *line)
{
	return line[0] == '#' && ((line[1] >= 'A' && line[1] <= 'Z') || line[1] == '[');
}

static void compare_with_table(const struct config_key_info *k, const char *section, char *line)
{
	char *value = strchr(line, '=');

	assert_non_null(value);
	*value++ = '\0';
	assert_string_equal(section, k->section);
	assert_string_equal(line, k->key);
	if (k->default_text)
		assert_string_equal(value, k->default_text);
	else
		assert_true(*value);
}

static void test_shipped_file_lists_every_key(void **state)
{
	_cleanup_free_ char *text = slurp("conf/mthpd.conf");
	char section[32] = "", *rest = NULL;
	size_t n_keys, n = 0;
	const struct config_key_info *keys = config_keys(&n_keys);
	bool explained = false;

	(void)state;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		bool commented = is_commented_line(line);

		line += commented;
		if (*line == '[') {
			snprintf(section, sizeof(section), "%.*s", (int)strcspn(line + 1, " ]"),
				line + 1);
			assert_int_equal(commented, strcmp(section, "Policy") == 0);
		} else if (commented) {
			assert_true(n < n_keys);
			/* A policy's [Controller] keys share the words above the first. */
			assert_true(explained || (strcmp(section, "Policy") == 0 &&
							 *keys[n].default_text == '\0'));
			compare_with_table(&keys[n++], section, line);
			explained = false;
		} else {
			assert_int_equal(*line, '#');
			explained = true;
		}
	}
	assert_int_equal(n, n_keys);
}

static void test_shipped_file_is_the_defaults(void **state)
{
	_cleanup_free_ char *text = slurp("conf/mthpd.conf");
	_cleanup_config_ struct config *c = NULL, *d = config_new_default();
	struct faults f = {0};

	(void)state;
	assert_int_equal(config_load("conf/mthpd.conf", "", collect_fault, &f, &c), 0);
	assert_int_equal(c->n_policies, 0);
	config_free(c);
	c = NULL;
	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (is_commented_line(line))
			*line = ' ';
	}
	if (config_load_text("all", text, strlen(text), collect_fault, &f, &c) != 0)
		fail_msg("%s", f.text);
	assert_int_equal(c->n_policies, 1);
	assert_memory_equal(&c->controller, &d->controller, sizeof(d->controller));
	assert_memory_equal(&c->policies[0].controller, &d->controller, sizeof(d->controller));
	assert_memory_equal(c, d, offsetof(struct config, sizes));
	assert_int_equal(c->n_sizes, 0);
	assert_int_equal(c->max_ptes_none, d->max_ptes_none);
	assert_true(c->defrag == d->defrag && c->shmem == d->shmem);
	assert_int_equal(c->foreign, d->foreign);
	assert_int_equal(c->restore_on_exit, d->restore_on_exit);
	assert_null(c->metrics_listen);
	assert_true(c->policies[0].controlled && !c->policies[0].protect);
	assert_int_equal(c->policies[0].weight, 100);
	assert_int_equal(c->policies[0].max_ptes_none, CONFIG_PTES_BASELINE);
}

static void test_shipped_profiles(void **state)
{
	static const struct {
		const char *profile, *path, *policy;
	} cases[] = {
		{"server", "system.slice/nginx.service", "frontend"},
		{"server", "system.slice/php8.2-fpm.service", "frontend"},
		{"server",
			"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/"
			"cri-containerd-00ff.scope",
			"containers"},
		{"server", "kubepods/burstable/pod12-34/00ff", "containers"},
		{"server", "kubepods/pod12-34/00ff", "containers"},
		{"server", "kubepods/burstable/pod12-34", NULL},
		{"server", "machine.slice/machine-qemu\\x2d1\\x2dvm.scope", "machines"},
		{"server", "system.slice/pg-backup.service", "backup"},
		{"server", "system.slice/cron.service", NULL},
		{"database", "system.slice/system-postgresql.slice/postgresql@15-main.service",
			"database"},
		{"database", "system.slice/mariadb.service", "database"},
		{"database", "system.slice/pg-dump.service", "maintenance"},
		{"desktop",
			"user.slice/user-1000.slice/user@1000.service/session.slice/"
			"org.gnome.Shell@wayland.service",
			"session"},
		{"desktop",
			"user.slice/user-1000.slice/user@1000.service/app.slice/"
			"app-gnome-org.gnome.Nautilus-1.scope",
			"apps"},
		{"desktop",
			"user.slice/user-1000.slice/user@1000.service/app.slice/"
			"app-gnome-firefox\\x2desr-96379.scope",
			"browser"},
		{"desktop",
			"user.slice/user-1000.slice/user@1000.service/app.slice/app-a.slice/"
			"app-a-chromium-1.scope",
			"browser"},
		{"desktop",
			"user.slice/user-1000.slice/user@1000.service/background.slice/"
			"tracker.service",
			"background"},
		{"android-like", "apps/uid_10123/pid_4567", "apps"},
		{"android-like", "uid_10123/pid_4567", "apps"},
		{"android-like", "system/uid_1000/pid_1", "system"},
	};
	/* Slices that a policy must not turn into one unit by accident. */
	static const char *const slices[] = {"system.slice", "user.slice", "machine.slice",
		"user.slice/user-1000.slice", "user.slice/user-1000.slice/user@1000.service",
		"user.slice/user-1000.slice/user@1000.service/app.slice", "kubepods.slice",
		"kubepods.slice/kubepods-burstable.slice", "system.slice/system-getty.slice"};

	(void)state;
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		_cleanup_config_ struct config *c = NULL;
		const struct config_policy *p;
		struct faults f = {0};
		char file[64];

		snprintf(file, sizeof(file), "conf/profiles/%s.conf", cases[i].profile);
		if (config_load(file, "", collect_fault, &f, &c) != 0)
			fail_msg("%s", f.text);
		p = config_policy_for(c, cases[i].path, NULL);
		if (!p != !cases[i].policy || (p && strcmp(p->name, cases[i].policy) != 0))
			fail_msg("%s: %s", cases[i].path, p ? p->name : "no policy");
		for (size_t j = 0; j < ELEMENTSOF(slices); j++)
			assert_null(config_policy_for(c, slices[j], NULL));
	}
}

#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_TREE(test_nothing_at_all),
		IN_TREE(test_drop_ins_by_name_over_all_directories),
		IN_TREE(test_same_name_overrides),
		IN_TREE(test_null_masks),
		IN_TREE(test_other_names_are_left_alone),
		IN_TREE(test_explicit_file_alone),
		cmocka_unit_test(test_null_as_explicit_file),
		IN_TREE(test_faults_of_all_files_in_one_pass),
		IN_TREE(test_section_ends_with_its_file),
		IN_TREE(test_what_is_no_file),
		IN_TREE(test_missing_explicit_file),
		IN_TREE(test_unreadable_file),
		IN_TREE(test_file_size_limit),
		IN_TREE(test_number_of_files_limit),
		cmocka_unit_test(test_shipped_file_lists_every_key),
		cmocka_unit_test(test_shipped_file_is_the_defaults),
		cmocka_unit_test(test_shipped_profiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
