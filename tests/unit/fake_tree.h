/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A throw-away directory tree for a unit test, and the fixtures read from real
 * kernels. Included by the tests of the modules that read /sys, /proc and
 * cgroup2; every helper fails the running test when it cannot do its work.
 */
#ifndef MTHPD_TEST_FAKE_TREE_H
#define MTHPD_TEST_FAKE_TREE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct fake_tree {
	char path[64];
	int fd;
};

static inline int fake_remove_entry(
	const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

/* cmocka set-up and tear-down: *state is the tree. */
static inline int fake_tree_setup(void **state)
{
	struct fake_tree *t = calloc(1, sizeof(*t));

	if (!t)
		return -1;
	snprintf(t->path, sizeof(t->path), "/tmp/mthpd-test.XXXXXX");
	if (!mkdtemp(t->path)) {
		free(t);
		return -1;
	}
	t->fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = t;
	return t->fd < 0 ? -1 : 0;
}

static inline int fake_tree_teardown(void **state)
{
	struct fake_tree *t = *state;
	int r = nftw(t->path, fake_remove_entry, 16, FTW_DEPTH | FTW_PHYS);

	close(t->fd);
	free(t);
	return r;
}

/* A directory with all its parents. */
static inline void fake_dir(const struct fake_tree *t, const char *path)
{
	char part[PATH_MAX];

	for (size_t i = 0;; i++) {
		if (path[i] == '/' || path[i] == '\0') {
			snprintf(part, sizeof(part), "%.*s", (int)i, path);
			if (i > 0 && mkdirat(t->fd, part, 0755) < 0)
				assert_int_equal(errno, EEXIST);
		}
		if (path[i] == '\0')
			return;
	}
}

/* A file of exactly @n bytes, with its directories; replaces an older one. */
static inline void fake_bytes(
	const struct fake_tree *t, const char *path, const char *bytes, size_t n)
{
	const char *slash = strrchr(path, '/');
	char dir[PATH_MAX];
	int fd;

	if (slash) {
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
		fake_dir(t, dir);
	}
	fd = openat(t->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
}

static inline void fake_file(const struct fake_tree *t, const char *path, const char *text)
{
	fake_bytes(t, path, text, strlen(text));
}

static inline void fake_remove(const struct fake_tree *t, const char *path)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s/%s", t->path, path);
	assert_int_equal(nftw(full, fake_remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* A directory of tests/fixtures, relative to the repository root. */
static inline int fixture_dir(const char *path)
{
	char full[PATH_MAX];
	int fd;

	snprintf(full, sizeof(full), "tests/fixtures/%s", path);
	fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fail_msg("%s: run from the root of the repository", full);
	return fd;
}

#endif
