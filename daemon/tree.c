/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "log.h"

#define HASH_SIZE 8192

struct tree {
	int root_fd;
	const struct config *config;
	char *own_path;
	const struct tree_ops *ops;
	void *userdata;
	struct node *root;
	struct node *hash[HASH_SIZE];
	uint64_t next_token;
	size_t n_nodes;
	bool full_said;
	unsigned recheck_skip; /* groups without memory already looked at in this round */
};

static const char *at(const char *path)
{
	return *path ? path : ".";
}

static bool is_slice(const char *name)
{
	size_t n = strlen(name);

	return n >= 6 && !strcmp(name + n - 6, ".slice");
}

static bool names_inner(const char *pattern)
{
	const char *last = strrchr(pattern, '/');

	last = last ? last + 1 : pattern;
	return last[strspn(last, "*?")] != '\0';
}

bool tree_names(const struct tree *t, const struct node *n)
{
	const char *pattern = NULL;

	return config_policy_for(t->config, n->path, &pattern) && names_inner(pattern);
}

bool tree_is_slice(const struct node *n)
{
	return is_slice(n->name);
}

static bool has_memory_file(const struct tree *t, const char *path)
{
	char file[4096 + 32];

	if (snprintf(file, sizeof(file), "%s/memory.current", at(path)) >= (int)sizeof(file))
		return false;
	return faccessat(t->root_fd, file, F_OK, 0) == 0;
}

static bool below_unit(const struct node *n)
{
	for (n = n->parent; n; n = n->parent)
		if (n->kind == NODE_UNIT || n->kind == NODE_PART)
			return true;
	return false;
}

static bool memory_below(const struct node *n)
{
	for (const struct node *c = n->child; c; c = c->next)
		if (c->has_memory || memory_below(c))
			return true;
	return false;
}

static enum node_kind kind_of(const struct tree *t, const struct node *n)
{
	if (!n->parent)
		return NODE_INNER;
	if (!n->has_memory)
		return NODE_NO_MEMORY;
	if (below_unit(n))
		return NODE_PART;
	if (tree_names(t, n))
		return NODE_UNIT;
	/* A slice speaks only for groups below it that have no memory files. */
	if (is_slice(n->name))
		return n->child && !memory_below(n) ? NODE_UNIT : NODE_INNER;
	return memory_below(n) ? NODE_CONTAINER : NODE_UNIT;
}

/* A group's kind follows from those above and below it, so a change is passed on
 * to the groups below (a unit's are parts, a container's are not). */
static void update_kind(struct tree *t, struct node *n)
{
	enum node_kind k = kind_of(t, n);

	if (k == n->kind)
		return;
	n->kind = k;
	t->ops->changed(n, t->userdata);
	for (struct node *c = n->child; c; c = c->next)
		update_kind(t, c);
}

static void update_above(struct tree *t, struct node *n)
{
	for (n = n->parent; n && n->parent; n = n->parent)
		update_kind(t, n);
}

struct tree *tree_new(int root_fd, const struct config *config, const char *own_path,
	const struct tree_ops *ops, void *userdata)
{
	struct tree *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->root_fd = root_fd;
	t->config = config;
	t->ops = ops;
	t->userdata = userdata;
	t->next_token = 1;
	t->own_path = own_path ? strdup(own_path) : NULL;
	t->root = calloc(1, sizeof(*t->root));
	if (!t->root || !(t->root->path = strdup(""))) {
		tree_free(t);
		return NULL;
	}
	t->root->name = t->root->path;
	t->root->token = t->next_token++;
	t->root->kind = NODE_INNER;
	t->hash[t->root->token % HASH_SIZE] = t->root;
	t->n_nodes = 1;
	return t;
}

static void unlink_node(struct tree *t, struct node *n)
{
	struct node **p;

	for (p = &t->hash[n->token % HASH_SIZE]; *p; p = &(*p)->hash_next)
		if (*p == n) {
			*p = n->hash_next;
			break;
		}
	if (n->parent)
		for (p = &n->parent->child; *p; p = &(*p)->next)
			if (*p == n) {
				*p = n->next;
				break;
			}
	t->n_nodes--;
}

static void free_below(struct tree *t, struct node *n)
{
	while (n->child)
		tree_remove(t, n->child); /* unlinks it: NOLINT(clang-analyzer-unix.Malloc) */
}

void tree_remove(struct tree *t, struct node *n)
{
	struct node *parent = n->parent;

	free_below(t, n);
	t->ops->removed(n, t->userdata);
	unlink_node(t, n);
	free(n->path);
	free(n);
	if (parent && parent->parent) {
		update_kind(t, parent);
		update_above(t, parent);
	}
}

void tree_free(struct tree *t)
{
	if (!t)
		return;
	if (t->root) {
		free_below(t, t->root);
		t->ops->removed(t->root, t->userdata);
		free(t->root->path);
		free(t->root);
	}
	free(t->own_path);
	free(t);
}

struct node *tree_root(struct tree *t)
{
	return t->root;
}

size_t tree_count(const struct tree *t)
{
	return t->n_nodes;
}

struct node *tree_by_token(struct tree *t, uint64_t token)
{
	for (struct node *n = t->hash[token % HASH_SIZE]; n; n = n->hash_next)
		if (n->token == token)
			return n;
	return NULL;
}

static struct node *child_by_name(struct node *parent, const char *name, size_t len)
{
	for (struct node *c = parent->child; c; c = c->next)
		if (!strncmp(c->name, name, len) && !c->name[len])
			return c;
	return NULL;
}

struct node *tree_by_path(struct tree *t, const char *path)
{
	struct node *n = t->root;

	while (*path == '/')
		path++;
	while (n && *path) {
		size_t len = strcspn(path, "/");

		n = child_by_name(n, path, len);
		path += len;
		while (*path == '/')
			path++;
	}
	return n;
}

struct node *tree_next(struct node *n)
{
	return n->child ? n->child : tree_next_beside(n);
}

struct node *tree_next_beside(struct node *n)
{
	while (n && !n->next)
		n = n->parent;
	return n ? n->next : NULL;
}

static unsigned depth_of(const struct node *n)
{
	unsigned d = 0;

	for (; n->parent; n = n->parent)
		d++;
	return d;
}

static struct node *add_node(struct tree *t, struct node *parent, const char *name, uint64_t id)
{
	size_t lp = strlen(parent->path), ln = strlen(name);
	struct node *n;

	if (t->n_nodes >= TREE_NODES_MAX || depth_of(parent) >= TREE_DEPTH_MAX) {
		if (!t->full_said)
			log_warning("more than %d cgroups (or %d levels): the rest is not looked at",
				TREE_NODES_MAX, TREE_DEPTH_MAX);
		t->full_said = true;
		return NULL;
	}
	n = calloc(1, sizeof(*n));
	if (!n || !(n->path = malloc(lp + ln + 2))) {
		free(n);
		return NULL;
	}
	memcpy(n->path, parent->path, lp);
	if (lp)
		n->path[lp++] = '/';
	memcpy(n->path + lp, name, ln + 1);
	n->name = n->path + lp;
	n->token = t->next_token++;
	n->id = id;
	n->parent = parent;
	n->next = parent->child;
	parent->child = n;
	n->hash_next = t->hash[n->token % HASH_SIZE];
	t->hash[n->token % HASH_SIZE] = n;
	t->n_nodes++;
	n->has_memory = has_memory_file(t, n->path);
	n->own = t->own_path && !strcmp(n->path, t->own_path);
	n->kind = NODE_NO_MEMORY;
	return n;
}

static void added(struct tree *t, struct node *n)
{
	n->kind = kind_of(t, n);
	t->ops->changed(n, t->userdata);
	tree_scan(t, n);
	update_above(t, n);
}

static struct node *ensure_child(struct tree *t, struct node *parent, const char *name)
{
	struct node *n = child_by_name(parent, name, strlen(name));
	char path[4096 + 256];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/%s", at(parent->path), name) >= (int)sizeof(path) ||
		fstatat(t->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode)) {
		if (n)
			tree_remove(t, n);
		return NULL;
	}
	/* The same name with another inode is another group: it starts clean. */
	if (n && n->id != (uint64_t)st.st_ino) {
		tree_remove(t, n);
		n = NULL;
	}
	if (n)
		return n;
	n = add_node(t, parent, name, (uint64_t)st.st_ino);
	if (n)
		added(t, n);
	return n;
}

void tree_child_created(struct tree *t, struct node *parent, const char *name)
{
	ensure_child(t, parent, name);
}

void tree_child_removed(struct tree *t, struct node *parent, const char *name)
{
	/* It may have been made again since the event: ask the directory. */
	ensure_child(t, parent, name);
}

static void remove_vanished(struct tree *t, struct node *n)
{
	struct node *c = n->child;

	while (c) {
		struct node *next = c->next;
		struct stat st;

		if (fstatat(t->root_fd, c->path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			(uint64_t)st.st_ino != c->id)
			tree_remove(t, c);
		c = next;
	}
}

void tree_scan(struct tree *t, struct node *n)
{
	_cleanup_closedir_ DIR *d = NULL;
	int fd = openat(t->root_fd, at(n->path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *e;

	if (fd < 0)
		return;
	d = fdopendir(fd);
	if (!d) {
		close(fd);
		return;
	}
	remove_vanished(t, n);
	while ((e = readdir(d))) {
		struct node *c;

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN))
			continue;
		c = child_by_name(n, e->d_name, strlen(e->d_name));
		if (!c)
			ensure_child(t, n, e->d_name);
		else
			tree_scan(t, c);
	}
}

void tree_set_config(struct tree *t, const struct config *config)
{
	t->config = config;
	for (struct node *n = t->root; n; n = tree_next(n)) {
		n->kind = kind_of(t, n);
		t->ops->changed(n, t->userdata);
	}
}

void tree_recheck_no_memory(struct tree *t, unsigned max)
{
	unsigned seen = 0, done = 0;

	for (struct node *n = t->root; n; n = tree_next(n)) {
		if (n->kind != NODE_NO_MEMORY || seen++ < t->recheck_skip)
			continue;
		if (done++ == max) {
			t->recheck_skip = seen - 1;
			return;
		}
		n->has_memory = has_memory_file(t, n->path);
		if (!n->has_memory)
			continue;
		update_kind(t, n);
		update_above(t, n);
	}
	t->recheck_skip = 0;
}
