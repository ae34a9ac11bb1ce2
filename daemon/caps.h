/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What this machine can do, found out by looking, never by version: each
 * capability is probed once at start (and again at reload), degrades alone and
 * has a sentence for people. Called by main and the engine.
 */
#ifndef MTHPD_CAPS_H
#define MTHPD_CAPS_H

#include <jansson.h>

#include "host.h"
#include "thp.h"

enum psi_state { PSI_OK, PSI_DISABLED, PSI_ABSENT, PSI_DENIED, PSI_UNCLEAR, PSI_NO_PROC };

struct caps {
	char release[128];
	enum host_cgroup_mode cgroup_mode;
	char cgroup_mount[PATH_MAX]; /* of cgroup2, below --root */
	int cgroup_errno; /* why it cannot be opened: HOST_CGROUP_UNREACHABLE */
	char boot_option[64];
	char own_cgroup[PATH_MAX]; /* our own group, relative; "" unknown */
	bool thp, per_size, mthp_collapse, shrink_underused, size_swpin, writable, boot_never;
	enum psi_state psi;
	int triggers;             /* -1 not tried, 0 refused (polling), 1 armed */
	uint64_t trigger_window_usec;
	bool memcg_margin;        /* our kernel */
	/* What it has for each group, as group_actuator_files() tells; there was a group to look at. */
	unsigned own_files;
	bool own_files_known;
	unsigned n_sizes, page_kb;
	unsigned n_switched; /* sizes that have a switch (`enabled`); others are for shmem only */
	/* Kept up to date by the engine: sizes whose switch says something usable, files that are
	 * steered, and those of them that cannot be written. */
	unsigned n_usable, n_steered, n_denied;
	uint64_t pmd_kb;
};

/* @root: --root prefix or "". @root_fd: descriptor of root. @thp: NULL when the
 * kernel has no transparent_hugepage directory. */
void caps_probe(const char *root, int root_fd, const struct thp_tree *thp, struct caps *ret);

/* Calls @fn once per capability: a stable word, what was found, and a remedy
 * ("" when nothing is missing). */
typedef void (*caps_fn)(const char *word, const char *found, const char *remedy, void *userdata);
void caps_describe(const struct caps *c, caps_fn fn, void *userdata);

json_t *caps_to_json(const struct caps *c);

#endif
