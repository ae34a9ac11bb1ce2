/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A journal of any content: loading it must not crash, restoring from it must
 * touch nothing outside transparent_hugepage and write nothing but a value that
 * its file lists, and a journal that was accepted must be accepted again after
 * mthpd wrote it. Works on a fake tree in a temporary directory; the root that
 * the seeds name does not exist, so no journal can mean the machine's own /sys.
 */
#include <stdbool.h>
#include <stdint.h>

#include "baseline.h"
#include "../fixtures/thp-tree.h"

#define FUZZ_ROOT "/nonexistent-mthp-fuzz"

static struct tree tree;
static char journal[160], outside[160];

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

static void prepare(void)
{
	tree_new(&tree);
	snprintf(journal, sizeof(journal), "%s/baseline.json", tree.run);
	snprintf(outside, sizeof(outside), "%s/sys/kernel/mm/enabled", tree.root);
	tree_write(outside, "always [madvise] never\n");
	require(mkdir(tree.run, 0755) == 0);
	atexit(clean);
}

static void on_report(const char *path, const char *outcome, const char *from, const char *to,
	int error, void *userdata)
{
	(void)from, (void)error, (void)userdata;
	require(path[0] != '/' && !strstr(path, ".."));
	if (strcmp(outcome, "restored"))
		return;
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

static struct baseline *open_again(const char **ret_warning)
{
	struct baseline *b = NULL;

	require(baseline_open(tree.run, FUZZ_ROOT, &b, ret_warning) == 0);
	return b;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *warning = NULL;
	struct baseline *b;
	FILE *f;

	if (!journal[0])
		prepare();
	f = fopen(journal, "w");
	require(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
	b = open_again(&warning);
	if (!warning) {
		require(baseline_set_restore_on_exit(b, !baseline_restore_wanted(b)) == 0);
		baseline_free(b);
		b = open_again(&warning);
		require(!warning);
		require(baseline_restore(b, tree.thp_fd, -1, on_report, NULL) >= 0);
		require(baseline_restore(b, tree.thp_fd, -1, on_report, NULL) >= 0);
	}
	baseline_free(b);
	require(!strcmp(tree_text(outside), "always [madvise] never\n"));
	for (size_t i = 0; i < TREE_FILES; i++)
		require(!strcmp(tree_get(&tree, tree_files[i].path), tree_files[i].text));
	unlink(journal);
	return 0;
}
