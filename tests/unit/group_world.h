/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A group actuator over a fake cgroup2 tree, for test_group_*.c. The shim is
 * compiled in: it makes the plain files show their values as cgroup2 does, lets
 * them fail, and records what is opened and written.
 */
#ifndef MTHP_TESTS_GROUP_WORLD_H
#define MTHP_TESTS_GROUP_WORLD_H

/* first: it redefines what _FORTIFY_SOURCE wraps */
#include "../fixtures/errno-shim.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "notices.h"

#include "baseline-groups.h"
#include "group-actuator.h"
#include "../fixtures/thp-tree.h"

#define WEB "system.slice/web.service"
#define DB "system.slice/db.service"
#define MAX_SIZE "memory.thp.max_size"
#define PTES_NONE "memory.thp.max_ptes_none"
#define MARGIN "memory.thp.margin"
#define CGROUP_RULE "*/memory.thp.* write cgroup\n"
#define LEN(a) (sizeof(a) / sizeof((a)[0]))

struct world {
	struct tree tree;
	char cg[128], rules[128], log[128], journal[128];
	int cg_fd;
	struct baseline *baseline;
	struct group_actuator *a;
	const char *journal_warning;
	struct notices said;
	void (*when_foreign)(struct world *w);
};

/* ---- groups ------------------------------------------------------------- */

static inline void group_path_of(
	const struct world *w, const char *group, const char *file, char ret[PATH_MAX])
{
	snprintf(ret, PATH_MAX, "%s/%s%s%s", w->cg, group, file ? "/" : "", file ? file : "");
}

static inline void put(const struct world *w, const char *group, const char *file, const char *text)
{
	char path[PATH_MAX];

	group_path_of(w, group, file, path);
	tree_write(path, text);
}

/* Of groups that nobody steers. */
static inline void audit(const struct world *w)
{
	group_actuator_audit_begin(w->a);
	group_actuator_audit_rest(w->a, false);
}

/* Does the journal's table say that a value of ours is in the group's files? */
static inline bool written(const struct world *w, const char *path)
{
	const struct group_table *t = baseline_groups(w->baseline);

	for (unsigned i = 0; i < t->n; i++)
		if (!strcmp(t->entries[i]->path, path) && group_entry_is_changed(t->entries[i]))
			return true;
	return false;
}

static inline const char *text_of(const struct world *w, const char *group, const char *file)
{
	char path[PATH_MAX];

	group_path_of(w, group, file, path);
	return tree_text(path);
}

static inline void group_make(const struct world *w, const char *group)
{
	put(w, group, MAX_SIZE, "max\n");
	put(w, group, PTES_NONE, "inherit\n");
	put(w, group, MARGIN, "inherit\n");
}

static inline uint64_t id_of(const struct world *w, const char *group)
{
	char path[PATH_MAX];
	struct stat st;

	group_path_of(w, group, NULL, path);
	assert_int_equal(stat(path, &st), 0);
	return (uint64_t)st.st_ino;
}

static inline void group_remove(const struct world *w, const char *group)
{
	char path[PATH_MAX];

	group_path_of(w, group, NULL, path);
	assert_int_equal(nftw(path, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Another group under the same name. Made before the old one goes: a file system
 * on a disk would use the number again. */
static inline void group_create_anew(const struct world *w, const char *group)
{
	char from[PATH_MAX], to[PATH_MAX];

	group_make(w, "coming");
	group_remove(w, group);
	group_path_of(w, "coming", NULL, from);
	group_path_of(w, group, NULL, to);
	assert_int_equal(rename(from, to), 0);
}

/* ---- the actuator ------------------------------------------------------- */

static inline void on_warn(const char *message, void *userdata)
{
	note_warning(message, &((struct world *)userdata)->said);
}

static inline void on_given_back(const char *path, const char *old, const char *now, void *userdata)
{
	struct world *w = userdata;

	note_given_back(path, old, now, &w->said);
}

static inline void on_foreign(
	const char *path, const char *expected, const char *found, bool adopted, void *userdata)
{
	struct world *w = userdata;

	note_foreign(path, expected, found, adopted, &w->said);
	if (w->when_foreign)
		w->when_foreign(w);
}

static inline void start(struct world *w)
{
	static const struct actuator_ops ops = {.warn = on_warn, .foreign = on_foreign, .given_back = on_given_back};

	w->journal_warning = NULL;
	assert_int_equal(
		baseline_open(w->tree.run, w->tree.root, &w->baseline, &w->journal_warning), 0);
	assert_int_equal(group_actuator_new(w->cg_fd, w->baseline, &ops, w, &w->a), 0);
}

static inline void stop(struct world *w)
{
	group_actuator_free(w->a);
	baseline_free(w->baseline);
	w->a = NULL;
	w->baseline = NULL;
}

static inline int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	tree_new(&w->tree);
	snprintf(w->cg, sizeof(w->cg), "%s/sys/fs/cgroup", w->tree.root);
	snprintf(w->rules, sizeof(w->rules), "%s/rules", w->tree.root);
	snprintf(w->log, sizeof(w->log), "%s/log", w->tree.root);
	snprintf(w->journal, sizeof(w->journal), "%s/baseline.json", w->tree.run);
	group_make(w, WEB);
	group_make(w, DB);
	put(w, "", "cgroup.controllers", "cpu memory pids\n");
	w->cg_fd = open(w->cg, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(w->cg_fd >= 0);
	tree_write(w->rules, CGROUP_RULE "*/transparent_hugepage/* write sysfs\n");
	tree_write(w->log, "");
	setenv("MTHP_SHIM_RULES", w->rules, 1);
	setenv("MTHP_SHIM_LOG", w->log, 1);
	start(w);
	*state = w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	shim_before = NULL;
	stop(w);
	unsetenv("MTHP_SHIM_RULES");
	unsetenv("MTHP_SHIM_LOG");
	close(w->cg_fd);
	tree_free(&w->tree);
	free(w);
	return 0;
}

static inline enum actuator_result apply(
	struct world *w, const char *group, enum own_file k, const char *value)
{
	return group_actuator_apply(w->a, group, id_of(w, group), k, value, NULL);
}

static inline struct actuator_counts counts(struct world *w)
{
	struct actuator_counts c;

	group_actuator_counts(w->a, &c);
	return c;
}

/* ---- what was done ------------------------------------------------------ */

/* Lines of the log for operation @op that have @what. */
static inline unsigned logged(struct world *w, const char *op, const char *what)
{
	char *text = strdup(tree_text(w->log)), *save = NULL;
	size_t len = strlen(op);
	unsigned n = 0;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		n += !strncmp(line, op, len) && line[len] == '\t' && strstr(line, what);
	free(text);
	return n;
}

static inline int restore(struct world *w)
{
	forget_reports(&w->said);
	return baseline_restore(w->baseline, w->tree.thp_fd, w->cg_fd, note_report, &w->said);
}

/* mthpd --restore, as ExecStopPost runs it; no daemon holds the lock. */
static inline int command(struct world *w)
{
	forget_reports(&w->said);
	w->journal_warning = NULL;
	return baseline_restore_command(
		w->tree.run, w->tree.root, false, note_report, &w->said, &w->journal_warning);
}

static inline bool has_journal(struct world *w)
{
	return tree_text(w->journal) != NULL;
}

/* Runs @step in a child that is killed right behind it, or in it. */
static inline void killed_in(struct world *w, void (*step)(struct world *w))
{
	int status = 0;
	pid_t pid;

	stop(w);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		start(w);
		step(w);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static inline void assert_values(const struct own_values *v, const char *size, const char *ptes,
	const char *margin)
{
	assert_string_equal(v->value[OWN_MAX_SIZE], size);
	assert_string_equal(v->value[OWN_MAX_PTES_NONE], ptes);
	assert_string_equal(v->value[OWN_MARGIN], margin);
}

static inline void look(struct world *w, const char *group, struct own_values *now,
	struct own_values *base)
{
	assert_int_equal(group_actuator_look(w->a, group, id_of(w, group), now, base), 0);
}

static inline void set_rules(struct world *w, const char *first)
{
	char text[512];

	snprintf(text, sizeof(text), "%s%s", first, CGROUP_RULE);
	tree_write(w->rules, text);
}

static inline void assert_stands(struct world *w, const char *value)
{
	char text[64];

	snprintf(text, sizeof(text), "%s\n", value);
	assert_string_equal(text_of(w, WEB, MAX_SIZE), text);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
