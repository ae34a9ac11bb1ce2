/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ctl.h"
int ctl_plot(const struct ctl *ctl){(void)ctl; return CTL_NO;}
