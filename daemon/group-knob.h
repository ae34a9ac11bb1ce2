/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The three memory.thp.* files of one memory cgroup (lib/own.h): how a group's
 * directory is found, and how a value is read and written there. Called by the
 * baseline and by the group actuator, the only two that write to these files. Keeps
 * no state, never decides what is wanted, never follows a link, never leaves the
 * cgroup tree.
 */
#ifndef MTHPD_GROUP_KNOB_H
#define MTHPD_GROUP_KNOB_H

#include <stdbool.h>
#include <stdint.h>

#include "own.h"

/* Relative to the cgroup root, without a leading slash; no "", "." or ".."
 * component, no newline; shorter than PATH_MAX. The root, "", is none: it has no such files. */
bool group_path_valid(const char *path);

/* Opens the directory of the group @path and compares its inode with @id.
 * Returns a descriptor; whatever is done through it happens to this group or,
 * when that is gone by then, to none. -EINVAL (path), -ESTALE (there is no such
 * group any more, or another one under its name), other -errno. */
int group_open(int cg_fd, const char *path, uint64_t id);

/* What the file at @path (relative to @dir_fd, ends in the file of @k) holds.
 * -ENOENT, -ENODEV (gone), -EINVAL (not understood), other -errno. */
int group_read(int dir_fd, const char *path, enum own_file k, char ret_value[OWN_VALUE_LEN]);

/* Writes with one write(2). Returns 0 or -errno; -EIO for a short write. */
int group_write(int group_fd, enum own_file k, const char *value);

#endif
