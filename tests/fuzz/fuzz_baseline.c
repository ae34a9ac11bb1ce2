/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A journal of any content: loading it must not crash, restoring from it must
 * touch nothing outside transparent_hugepage and the one group that there is, and
 * write nothing but a value that its file can hold, and a journal that was
 * accepted must be accepted again after mthpd wrote it. Works on a fake tree in a
 * temporary directory; the root that the seeds name does not exist, so no journal
 * can mean the machine's own /sys. The inode of the group is not known beforehand:
 * it takes the place of the first "id":7.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "baseline-groups.h"
#include "../fixtures/thp-tree.h"

#define FUZZ_ROOT "/nonexistent-mthp-fuzz"

#define GROUP "a.slice/g"
#define ID "\"id\":7"

static struct tree tree;
static char journal[160], outside[160], cg[160];
static int cg_fd;
static const char *const group_start[OWN_FILES] = {"65536", "100", "0"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void clean(void)
{
	tree_free(&tree);
}

static void group_file(const char *group, enum own_file k, char ret[PATH_MAX])
{
	snprintf(ret, PATH_MAX, "%s/%s%s%s", cg, group, *group ? "/" : "", own_file_name[k]);
}

static void put_groups(void)
{
	char path[PATH_MAX];

	for (unsigned k = 0; k < OWN_FILES; k++) {
		group_file(GROUP, k, path);
		tree_write(path, group_start[k]);
		/* no groups, but what paths that lead astray would reach */
		group_file("", k, path);
		tree_write(path, group_start[k]);
		group_file("..", k, path);
		tree_write(path, group_start[k]);
	}
}

static void require_groups_as_before(void)
{
	static const char *const groups[] = {GROUP, "", ".."};
	char path[PATH_MAX];

	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k < OWN_FILES; k++) {
			group_file(groups[i], k, path);
			require(!strcmp(tree_text(path), group_start[k]));
		}
	}
}

static void prepare(void)
{
	tree_new(&tree);
	snprintf(journal, sizeof(journal), "%s/baseline.json", tree.run);
	snprintf(outside, sizeof(outside), "%s/sys/kernel/mm/enabled", tree.root);
	tree_write(outside, "always [madvise] never\n");
	require(mkdir(tree.run, 0755) == 0);
	snprintf(cg, sizeof(cg), "%s/cg", tree.root);
	put_groups();
	cg_fd = open(cg, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	require(cg_fd >= 0);
	atexit(clean);
}

static void on_group_restored(const char *path, const char *to)
{
	char full[PATH_MAX];

	for (unsigned k = 0; k < OWN_FILES; k++) {
		snprintf(full, sizeof(full), GROUP "/%s", own_file_name[k]);
		if (strcmp(path, full))
			continue;
		group_file(GROUP, k, full);
		require(own_value_valid(k, to) && !strcmp(tree_text(full), to));
		tree_write(full, group_start[k]);
		return;
	}
	abort();
}

static void on_restored(const char *path, const char *to)
{
	for (size_t i = 0; i < TREE_FILES; i++) {
		if (strcmp(path, tree_files[i].path))
			continue;
		/* a plain file now holds the bare value */
		require(!strcmp(tree_get(&tree, path), to));
		require(!strchr(tree_files[i].text, '[') || strstr(tree_files[i].text, to));
		tree_put(&tree, path, tree_files[i].text);
		return;
	}
	abort(); /* written, but no file of the tree */
}

static void on_report(const char *path, const char *outcome, const char *from, const char *to,
	int error, void *userdata)
{
	(void)from, (void)error, (void)userdata;
	require(group_path_valid(path));
	if (strcmp(outcome, "restored"))
		return;
	if (strstr(path, "/memory.thp."))
		on_group_restored(path, to);
	else
		on_restored(path, to);
}

/* NULL: the journal is another root's; then it stays where it is. */
static struct baseline *open_again(const char **ret_warning)
{
	struct baseline *b = NULL;
	int r = baseline_open(tree.run, FUZZ_ROOT, &b, ret_warning);

	require(r == 0 || (r == -EXDEV && !b && access(journal, F_OK) == 0));
	return b;
}

static void write_journal(const uint8_t *data, size_t size)
{
	const uint8_t *id = memmem(data, size, ID, strlen(ID));
	size_t before = id ? (size_t)(id - data) : size;
	FILE *f = fopen(journal, "w");
	struct stat st;

	require(f && fstatat(cg_fd, GROUP, &st, 0) == 0 && fwrite(data, 1, before, f) == before);
	if (id) {
		fprintf(f, "\"id\":%llu", (unsigned long long)st.st_ino);
		before += strlen(ID);
		require(fwrite(data + before, 1, size - before, f) == size - before);
	}
	require(fclose(f) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *warning = NULL;
	struct baseline *b;

	if (!journal[0])
		prepare();
	write_journal(data, size);
	b = open_again(&warning);
	if (b && !warning) {
		require(baseline_set_restore_on_exit(b, !baseline_restore_wanted(b)) == 0);
		baseline_free(b);
		b = open_again(&warning);
		require(b && !warning);
		require(baseline_restore(b, tree.thp_fd, cg_fd, on_report, NULL) >= 0);
		require(baseline_restore(b, tree.thp_fd, cg_fd, on_report, NULL) >= 0);
	}
	baseline_free(b);
	require(!strcmp(tree_text(outside), "always [madvise] never\n"));
	for (size_t i = 0; i < TREE_FILES; i++)
		require(!strcmp(tree_get(&tree, tree_files[i].path), tree_files[i].text));
	require_groups_as_before();
	unlink(journal);
	return 0;
}
