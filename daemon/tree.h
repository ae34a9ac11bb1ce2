/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The cgroups that exist, and which of them are units of control. A node per
 * directory below the cgroup2 root; nodes come and go with inotify, by a scan
 * where there is none. Called by the engine; reads directory names and asks
 * which files exist, never samples, never decides about folios.
 *
 * The unit of control is the lowest group that has memory.current and is not a
 * slice by name. A group whose children have memory.current too is a
 * container: watched only. A policy whose pattern names an inner group (its
 * last component is more than wildcards) makes that group the unit and what
 * is below it parts of it.
 */
#ifndef MTHPD_TREE_H
#define MTHPD_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "config.h"

struct loop_group;

/* More than this and the rest is not looked at; said once. */
#define TREE_NODES_MAX 65536
#define TREE_DEPTH_MAX 64

enum node_kind {
	NODE_INNER,     /* a slice, or the root: holds units */
	NODE_UNIT,      /* steered */
	NODE_CONTAINER, /* its children have memory.current: watched only */
	NODE_PART,      /* below a unit that a policy made */
	NODE_NO_MEMORY, /* no memory.current: the nearest ancestor that has it speaks for it */
};

struct node {
	uint64_t token; /* never reused */
	uint64_t id;    /* inode */
	struct node *parent, *child, *next; /* first child, next sibling */
	struct node *hash_next;
	const char *name; /* points into path */
	char *path;       /* relative to the cgroup root, no leading slash */
	enum node_kind kind;
	bool has_memory, own; /* own: mthpd itself runs in it */
	unsigned char watched; /* enum watch_parts */
	/* the engine's */
	struct loop_group *group; /* while something is to be looked at */
	uint64_t next_look_usec;
	uint64_t last_pressure_usec;  /* polling: totals of the last cheap look */
	uint64_t last_events;
	bool polled, events_known;
	bool seen;    /* it was a unit once, and counted */
	bool unread;  /* not steered: its own files could not be read */
	bool hurried; /* looked at before the next tick */
	bool wants_look; /* it was not looked at since it is there, or since the last reload */
	const char *unclear; /* as in the last sample that could tell; NULL = none */
	bool unclear_full;   /* only a full look can */
	uint64_t last_max, last_oom_kill; /* of memory.events when it was last looked at */
	uint64_t engaged_until_usec;
	unsigned survey_round; /* the last look at all groups that included this one */
};

struct tree;

struct tree_ops {
	/* @n exists now, or its kind has changed. */
	void (*changed)(struct node *n, void *userdata);
	/* @n is about to be freed. */
	void (*removed)(struct node *n, void *userdata);
};

/* @root_fd borrowed; @config borrowed until tree_set_config(). NULL on ENOMEM. */
struct tree *tree_new(int root_fd, const struct config *config, const char *own_path,
	const struct tree_ops *ops, void *userdata);
void tree_free(struct tree *t);
struct node *tree_root(struct tree *t);
size_t tree_count(const struct tree *t);
struct node *tree_by_token(struct tree *t, uint64_t token);
struct node *tree_by_path(struct tree *t, const char *path);

/* Does a policy name this very group, rather than all that are below one? */
bool tree_names(const struct tree *t, const struct node *n);
bool tree_is_slice(const struct node *n);

/* Brings the part below @n up to date with the directories (added, removed,
 * re-created under the same name with another inode). */
void tree_scan(struct tree *t, struct node *n);
/* One directory entry came or went. */
void tree_child_created(struct tree *t, struct node *parent, const char *name);
void tree_child_removed(struct tree *t, struct node *parent, const char *name);
void tree_remove(struct tree *t, struct node *n);
/* New policies: kinds are computed anew. */
void tree_set_config(struct tree *t, const struct config *config);
/* Looks again at up to @max groups that had no memory files (a controller may
 * have been enabled since). */
void tree_recheck_no_memory(struct tree *t, unsigned max);

/* Depth-first successor within the whole tree, NULL at the end. */
struct node *tree_next(struct node *n);
/* The same, but not into what is below @n. */
struct node *tree_next_beside(struct node *n);

#endif
