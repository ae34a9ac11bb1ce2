/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The verb plot of mthpctl(1).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "ctl.h"
#include "trace-plot.h"

/* Through a file beside it: a picture is there whole or not at all. */
static int write_picture(const struct ctl *ctl, const struct plot *p)
{
	_cleanup_free_ char *tmp = NULL;
	FILE *f;
	int r;

	if (asprintf(&tmp, "%s.part", ctl->output) < 0)
		return -ENOMEM;
	f = fopen(tmp, "we");
	if (!f)
		return -errno;
	r = plot_draw(p, f);
	if (fflush(f) != 0 || ferror(f))
		r = -errno;
	if (fclose(f) != 0 && r == 0)
		r = -errno;
	if (r == 0 && rename(tmp, ctl->output) < 0)
		r = -errno;
	if (r < 0)
		unlink(tmp);
	return r;
}

int ctl_plot(const struct ctl *ctl)
{
	_cleanup_fclose_ FILE *f = fopen(ctl->args[0], "re");
	struct trace_why why;
	struct plot *p;
	int r;

	if (!f) {
		ctl_complain(ctl, "%s: %s", ctl->args[0], strerror(errno));
		return CTL_NO;
	}
	r = plot_read(f, &p, &why);
	if (r < 0)
		return ctl_complain_trace(ctl, ctl->args[0], r, &why);
	r = write_picture(ctl, p);
	plot_free(p);
	if (r < 0) {
		ctl_complain(ctl, "%s: %s", ctl->output, strerror(-r));
		return CTL_NO;
	}
	return CTL_OK;
}
