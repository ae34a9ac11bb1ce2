/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "caps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libcgroup.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cleanup.h"
#include "own.h"

#define THP_DIR "sys/kernel/mm/transparent_hugepage"

/* libcgroup says where the memory controller really is; hierarchy 0 is cgroup2. */
static int ask_libcgroup(struct caps *c)
{
	struct controller_data info;
	void *handle = NULL;
	char *mount = NULL;
	int hierarchy = -1, r;

	if (cgroup_init() != 0)
		return -ENOTSUP;
	r = cgroup_get_all_controller_begin(&handle, &info);
	while (r == 0) {
		if (!strcmp(info.name, "memory") && info.enabled)
			hierarchy = info.hierarchy;
		r = cgroup_get_all_controller_next(&handle, &info);
	}
	cgroup_get_all_controller_end(&handle);
	if (hierarchy != 0 || cgroup_get_subsys_mount_point("memory", &mount) != 0)
		return -ENOTSUP;
	c->cgroup_mode = HOST_CGROUP_V2;
	snprintf(c->cgroup_mount, sizeof(c->cgroup_mount), "%s", mount);
	free(mount);
	return 0;
}

static void find_cgroups(const char *root, int root_fd, struct caps *c)
{
	static struct host_cgroups g; /* PATH_MAX twice over is much for a stack */

	c->cgroup_mode = HOST_CGROUP_NONE;
	if (host_cgroups_find(root_fd, &g) == 0) {
		c->cgroup_mode = g.mode;
		snprintf(c->cgroup_mount, sizeof(c->cgroup_mount), "%s", g.mount_point);
		snprintf(c->boot_option, sizeof(c->boot_option), "%s", g.boot_option);
	}
	if (!*root && c->cgroup_mode == HOST_CGROUP_V2)
		ask_libcgroup(c);
}

static void find_own(const char *root, int root_fd, struct caps *c)
{
	char buf[8192], path[PATH_MAX];
	char *mine = NULL;

	if (!*root && c->cgroup_mode == HOST_CGROUP_V2 &&
		cgroup_get_current_controller_path(getpid(), "memory", &mine) == 0 && mine) {
		snprintf(c->own_cgroup, sizeof(c->own_cgroup), "%s", mine[0] == '/' ? mine + 1 : mine);
		free(mine);
		return;
	}
	if (parse_read_at(root_fd, "proc/self/cgroup", buf, sizeof(buf)) > 0 &&
		parse_proc_cgroup(buf, path, sizeof(path)) == 0)
		snprintf(c->own_cgroup, sizeof(c->own_cgroup), "%s", path + 1);
}

/* psi=0 leaves no /proc/pressure behind, as a kernel without PSI does. */
static bool booted_without_psi(int root_fd)
{
	char buf[4096], *rest = NULL;
	bool off = false;

	if (parse_read_at(root_fd, "proc/cmdline", buf, sizeof(buf)) < 0)
		return false;
	for (char *w = strtok_r(buf, " \n", &rest); w; w = strtok_r(NULL, " \n", &rest))
		if (!strncmp(w, "psi=", 4)) /* the last one counts */
			off = w[4] == '0' || w[4] == 'n' || w[4] == 'N' || !strcmp(w + 4, "off");
	return off;
}

/* Without /proc it is not the kernel that lacks what is not found there. */
static bool has_proc(int root_fd)
{
	struct host_sample s;

	return host_sample_read(root_fd, 0, &s) == 0;
}

static void find_psi(int root_fd, struct caps *c)
{
	char buf[1024];
	struct psi psi;
	ssize_t n = parse_read_at(root_fd, "proc/pressure/memory", buf, sizeof(buf));

	if (n >= 0)
		c->psi = parse_psi(buf, &psi) == 0 ? PSI_OK : PSI_UNCLEAR;
	else if (n == -EOPNOTSUPP)
		c->psi = PSI_DISABLED;
	else if (n == -EACCES || n == -EPERM)
		c->psi = PSI_DENIED;
	else if (n != -ENOENT && n != -ENOTDIR)
		c->psi = PSI_UNCLEAR;
	else if (!has_proc(root_fd))
		c->psi = PSI_NO_PROC;
	else
		c->psi = booted_without_psi(root_fd) ? PSI_DISABLED : PSI_ABSENT;
}

void caps_probe(const char *root, int root_fd, const struct thp_tree *thp, struct caps *c)
{
	struct utsname u;
	char buf[256];
	ssize_t n;

	memset(c, 0, sizeof(*c));
	c->triggers = -1;
	n = parse_read_at(root_fd, "proc/sys/kernel/osrelease", buf, sizeof(buf));
	if (n > 0)
		buf[strcspn(buf, "\n")] = '\0';
	snprintf(c->release, sizeof(c->release), "%.127s",
		n > 0 ? buf : uname(&u) == 0 ? u.release : "unknown");
	find_cgroups(root, root_fd, c);
	find_own(root, root_fd, c);
	find_psi(root_fd, c);
	c->boot_never = host_boot_never(root_fd);
	c->memcg_margin = faccessat(root_fd, THP_DIR "/memcg_margin", F_OK, 0) == 0;
	if (!thp)
		return;
	c->thp = true;
	c->per_size = thp->per_size;
	c->mthp_collapse = thp->mthp_collapse;
	c->size_swpin = thp->size_swpin;
	c->shrink_underused = value_known(thp->shrink_underused);
	c->n_sizes = thp->n_sizes;
	for (unsigned i = 0; i < thp->n_sizes; i++)
		c->n_switched += thp->sizes[i].enabled.n || thp->sizes[i].enabled_unparseable;
	c->page_kb = thp->page_kb;
	c->pmd_kb = thp->pmd_kb;
}

static const char *cgroup_found(const struct caps *c, char buf[160])
{
	switch (c->cgroup_mode) {
	case HOST_CGROUP_V2:
		snprintf(buf, 160, "cgroup v2 with the memory controller at %.100s", c->cgroup_mount);
		break;
	case HOST_CGROUP_HYBRID:
		return "hybrid: the memory controller sits on cgroup v1; the machine is treated as one group";
	case HOST_CGROUP_V1:
		return "cgroup v1 only; the machine is treated as one group";
	case HOST_CGROUP_NO_MEMORY:
		snprintf(buf, 160, "the memory controller is off%s%s; the machine is treated as one group",
			*c->boot_option ? " because of " : "", c->boot_option);
		break;
	case HOST_CGROUP_UNREACHABLE:
		snprintf(buf, 160, "%.60s cannot be opened (%.40s); the machine is treated as one group",
			c->cgroup_mount, strerror(c->cgroup_errno));
		break;
	case HOST_CGROUP_NONE:
	default:
		return "no cgroups; the machine is treated as one group";
	}
	return buf;
}

static const char *cgroup_remedy(const struct caps *c, char buf[160])
{
	switch (c->cgroup_mode) {
	case HOST_CGROUP_V2:
		return "";
	case HOST_CGROUP_NO_MEMORY:
		if (!*c->boot_option)
			return "enable the memory controller at boot (cgroup_enable=memory)";
		snprintf(buf, 160, "remove %s from the kernel command line", c->boot_option);
		return buf;
	case HOST_CGROUP_UNREACHABLE:
		return "mount cgroup2 there, and let mthpd see it";
	case HOST_CGROUP_HYBRID:
	case HOST_CGROUP_V1:
	case HOST_CGROUP_NONE:
	default:
		return c->psi == PSI_NO_PROC ? "mount /proc" : "boot with systemd.unified_cgroup_hierarchy=1";
	}
}

static const char *const psi_found[] = {
	[PSI_OK] = "present",
	[PSI_DISABLED] = "built in but switched off; memory.events and counters are used instead",
	[PSI_ABSENT] = "this kernel was built without PSI; memory.events and counters are used instead",
	[PSI_DENIED] = "not readable; memory.events and counters are used instead",
	[PSI_UNCLEAR] = "/proc/pressure/memory is not understood; memory.events and counters are used instead",
	[PSI_NO_PROC] = "not known, /proc is not mounted; memory.events and counters are used instead",
};
static const char *const psi_remedy[] = {
	[PSI_OK] = "",
	[PSI_DISABLED] = "boot with psi=1",
	[PSI_ABSENT] = "use a kernel with CONFIG_PSI=y",
	[PSI_DENIED] = "run mthpd as root",
	[PSI_UNCLEAR] = "see what that file holds",
	[PSI_NO_PROC] = "mount /proc",
};

static void describe_sizes(const struct caps *c, char buf[160])
{
	int n = snprintf(buf, 160, "%u sizes, PMD %" PRIu64 " kB", c->n_sizes, c->pmd_kb);

	if (c->n_usable < c->n_switched)
		snprintf(buf + n, 160 - (size_t)n, "; only %u of %u switches can be steered by what they say",
			c->n_usable, c->n_switched);
}

static const char *own_file(unsigned k)
{
	return k < OWN_FILES ? own_file_name[k] : OWN_EVENTS;
}

static const char *memcg_thp_found(const struct caps *c, char buf[160])
{
	int n;

	if (!c->memcg_margin)
		return "stock kernel: one set of switches for all groups";
	if (!c->own_files_known)
		return "the kernel gates large folios per group";
	if (!(c->own_files & ((1U << OWN_FILES) - 1)))
		return "the kernel gates large folios per group, but groups have no memory.thp.* files: one set of "
		       "switches for all groups";
	n = snprintf(buf, 160, "the kernel gates large folios per group");
	for (unsigned k = 0, missing = 0; k <= OWN_FILES; k++)
		if (!(c->own_files >> k & 1))
			n += snprintf(buf + n, 160 - (size_t)n, "%s%s", missing++ ? ", " : "; groups have no ",
				own_file(k));
	return buf;
}

static bool has_all_files(const struct caps *c)
{
	return !c->memcg_margin || !c->own_files_known || c->own_files + 1 == 1U << (OWN_FILES + 1);
}

/* The files that groups have; null where there was no group to look at. */
static json_t *own_files_json(const struct caps *c)
{
	json_t *a = c->own_files_known ? json_array() : json_null();

	for (unsigned k = 0; c->own_files_known && k <= OWN_FILES; k++)
		if (c->own_files >> k & 1)
			json_array_append_new(a, json_string(own_file(k)));
	return a;
}

void caps_describe(const struct caps *c, caps_fn fn, void *userdata)
{
	char a[160], b[160];

	fn("cgroup", cgroup_found(c, a), cgroup_remedy(c, b), userdata);
	fn("psi", psi_found[c->psi], psi_remedy[c->psi], userdata);
	if (c->triggers == 1)
		snprintf(a, sizeof(a), "granted, window %" PRIu64 " ms", c->trigger_window_usec / 1000);
	fn("psi-triggers", c->triggers == 1 ? a : c->triggers == 0 ? "refused: pressure is polled" :
		c->psi != PSI_OK ? "no: there is no pressure to be told of" : "not tried yet", "", userdata);
	describe_sizes(c, a);
	fn("per-size", c->per_size ? a : "no hugepages-*kB directories: only the top-level switch is steered",
		c->per_size ? "" : "Linux 6.8 or later has them", userdata);
	snprintf(a, sizeof(a), "yes, but not %u of %u files: those stay as they are", c->n_denied, c->n_steered);
	fn("writable", !c->writable ? "no: changes are only logged" : c->n_denied ? a : "yes",
		c->writable ? "" : "run as root where /sys is mounted read-write", userdata);
	fn("mthp-collapse", c->mthp_collapse ? "yes: max_ptes_none is 0 or the maximum" : "no", "", userdata);
	fn("shrink-underused", c->shrink_underused ? "yes" : "no", "", userdata);
	fn("size-swpin", c->size_swpin ? "yes" : "no: swap-in size is inferred from refaults", "", userdata);
	fn("boot-never", c->boot_never ? "transparent_hugepage=never on the kernel command line: nothing is raised" :
		"no", "", userdata);
	fn("memcg-thp", memcg_thp_found(c, a), has_all_files(c) ? "" : "boot a kernel with the whole of kernel-patches",
		userdata);
}

json_t *caps_to_json(const struct caps *c)
{
	static const char *const psi_word[] = {
		[PSI_OK] = "present",
		[PSI_DISABLED] = "disabled",
		[PSI_ABSENT] = "absent",
		[PSI_DENIED] = "denied",
		[PSI_UNCLEAR] = "not-understood",
		[PSI_NO_PROC] = "no-proc",
	};

	return json_pack("{s:s, s:s, s:s, s:s?, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:i, s:i, s:i, s:I, s:I, s:o}",
		"cgroup", host_cgroup_mode_to_string(c->cgroup_mode), "psi", psi_word[c->psi],
		"psi_triggers", c->triggers == 1 ? "granted" : c->triggers == 0 ? "polling" : "unknown",
		"boot_option", *c->boot_option ? c->boot_option : NULL,
		"thp", c->thp, "per_size", c->per_size, "mthp_collapse", c->mthp_collapse,
		"shrink_underused", c->shrink_underused, "size_swpin", c->size_swpin,
		"writable", c->writable, "boot_never", c->boot_never, "memcg_thp",
		c->memcg_margin && (!c->own_files_known || c->own_files & ((1U << OWN_FILES) - 1)),
		"sizes", (int)c->n_sizes, "sizes_usable", (int)c->n_usable, "files_denied", (int)c->n_denied,
		"pmd_kb", (json_int_t)c->pmd_kb,
		"trigger_window_usec", (json_int_t)c->trigger_window_usec, "memcg_thp_files", own_files_json(c));
}
