/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "group-knob.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "parse.h"

bool group_path_valid(const char *path)
{
	/* cgroup_mkdir() takes no newline: it would break /proc/PID/cgroup */
	if (strlen(path) >= PATH_MAX || strchr(path, '\n'))
		return false;
	for (const char *p = path;; p++) {
		size_t len = strcspn(p, "/");

		if (len == 0 || len > NAME_MAX || (len == 1 && p[0] == '.') ||
			(len == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += len;
		if (!*p)
			return true;
	}
}

static bool is_gone(int error)
{
	return error == -ENOENT || error == -ENODEV || error == -ENOTDIR || error == -ELOOP;
}

/* One component at a time: O_NOFOLLOW speaks of the last one only. A link, which
 * cgroup2 does not have, counts as no group. */
static int walk(int cg_fd, const char *path)
{
	_cleanup_close_ int fd = -1;
	char name[NAME_MAX + 1];

	for (const char *p = path;; p++) {
		size_t len = strcspn(p, "/");
		int next;

		snprintf(name, sizeof(name), "%.*s", (int)len, p);
		next = openat(
			fd < 0 ? cg_fd : fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return is_gone(-errno) ? -ESTALE : -errno;
		cleanup_close(&fd);
		fd = next;
		p += len;
		if (!*p)
			return take_fd(&fd);
	}
}

int group_open(int cg_fd, const char *path, uint64_t id)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (!group_path_valid(path))
		return -EINVAL;
	fd = walk(cg_fd, path);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return (uint64_t)st.st_ino == id ? take_fd(&fd) : -ESTALE;
}

int group_read(int dir_fd, const char *path, enum own_file k, char ret_value[OWN_VALUE_LEN])
{
	char text[64], *word, *rest = NULL;
	ssize_t len = parse_read_attr_at(dir_fd, path, text, sizeof(text));

	if (len < 0)
		return len == -EFBIG ? -EINVAL : (int)len;
	/* a NUL byte would hide what follows it */
	if (strlen(text) != (size_t)len)
		return -EINVAL;
	word = strtok_r(text, " \t\n", &rest);
	if (!word || strtok_r(NULL, " \t\n", &rest) || !own_value_valid(k, word))
		return -EINVAL;
	snprintf(ret_value, OWN_VALUE_LEN, "%s", word);
	return 0;
}

int group_write(int group_fd, enum own_file k, const char *value)
{
	size_t len = strlen(value);
	_cleanup_close_ int fd = -1;
	ssize_t n;

	if (!own_value_valid(k, value))
		return -EINVAL;
	/* O_TRUNC means nothing to cgroup2; a plain file would keep its old tail.
	 * O_NONBLOCK: a FIFO in a fake tree must not stop us. */
	fd = openat(group_fd, own_file_name[k],
		O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	n = write(fd, value, len);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}
