/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "reason.h"

static const struct {
	const char *word, *text;
} table[REASON_MAX] = {
	[REASON_NONE] = { "none", "nothing has been decided yet" },
	[REASON_START_VALUES] = { "start-values",
		"the values found at start stand; nothing has given a reason to change them" },
	[REASON_DROP_PRESSURE] = { "drop-pressure",
		"tasks stall on memory while the group is at its limit and anonymous memory returns "
		"from swap: large folios are taken away until that ends" },
	[REASON_DROP_BLOAT] = { "drop-bloat",
		"the group overflows its limit while memory grows by several pages per page fault: "
		"large folios are taken away until that ends" },
	[REASON_DROP_STRONG] = { "drop-strong",
		"all tasks stall for much of the time and less than a twentieth of the limit is left" },
	[REASON_EXONERATED] = { "exonerated",
		"taking large folios away did not lower the cost of the work: they are given back" },
	[REASON_OOM_KILL] = { "oom-kill",
		"a task of the group was killed for lack of memory: its folios stay smaller for a while" },
	[REASON_OVERSIZED_FOLIO] = { "oversized-folio",
		"one folio of this size would not fit into the room that is left" },
	[REASON_RECOVER_WAIT] = { "recover-wait",
		"the pressure has ended; the hold time has to pass before a step up" },
	[REASON_RECOVER_PROBE] = { "recover-probe",
		"one step up is being tried after the pressure ended" },
	[REASON_RECOVER_STEP] = { "recover-step", "a step up did no harm; the next one follows" },
	[REASON_RECOVERED] = { "recovered", "all sizes of the start are back" },
	[REASON_PROBE_FAILED] = { "probe-failed",
		"a step up brought pressure or bloat back and was undone; the next try waits longer" },
	[REASON_RAISE_PROBE] = { "raise-probe",
		"the group faults in much fresh memory and has room: sizes that were only off by "
		"the kernel's default are being tried" },
	[REASON_RAISED] = { "raised",
		"the group faults in much fresh memory and has room: sizes are raised to the ceiling" },
	[REASON_RAISE_FAILED] = { "raise-failed",
		"raised sizes brought pressure or bloat and were taken back" },
	[REASON_FROZEN_STATS] = { "frozen-stats", "the group's statistics cannot be read" },
	[REASON_FROZEN_FOREIGN] = { "frozen-foreign",
		"somebody else changed a switch: the loop waits and looks" },
	[REASON_KHUGEPAGED_BLOAT] = { "khugepaged-bloat",
		"khugepaged fills holes with zeroed memory while the group loses its room: "
		"max_ptes_none is lowered" },
	[REASON_POLICY_LIMIT] = { "policy-limit", "[Limits] or the policy's MinSize, MaxSize or MaxPtesNone sets this" },
	[REASON_CLAMPED] = { "clamped", "another group or the ceiling holds the size down" },
	[REASON_OUTVOTED] = { "outvoted",
		"the benefit to the others outweighs the harm to groups that are hurt, or bounded by a "
		"policy" },
	[REASON_VETO] = { "veto", "a hurt group that may veto keeps the size off" },
	[REASON_VETO_SPENT] = { "veto-spent",
		"the veto was used for half of ten minutes; the others have their turn" },
	[REASON_SHIELDED] = { "shielded",
		"a protected group that is not hurt keeps what it asks for by madvise" },
	[REASON_FRAGMENTATION] = { "fragmentation",
		"allocations stall on compaction although memory is free: defrag is lowered" },
	[REASON_SWAP_FRAGMENTED] = { "swap-fragmented",
		"swap has room but no contiguous slots: large folios are split at swap-out" },
	[REASON_SPLIT_CHURN] = { "split-churn",
		"most large folios are torn apart soon after they were made" },
	[REASON_FALLBACK_DOMINATED] = { "fallback-dominated",
		"nearly every attempt to get this size fails" },
	[REASON_KHUGEPAGED_RUNAWAY] = { "khugepaged-runaway",
		"khugepaged scans again and again and collapses nothing: it is slowed down" },
	[REASON_PMD_TOO_LARGE] = { "pmd-too-large",
		"the PMD size is large against the memory of this host: madvise at most" },
	[REASON_NEAR_FULL] = { "near-full", "a group is nearly full" },
	[REASON_RECENT_PRESSURE] = { "recent-pressure", "a group was under pressure a while ago" },
	[REASON_NOT_CONTROLLED] = { "not-controlled", "the policy says Controlled=no" },
	[REASON_CONTAINER] = { "container",
		"its children have memory.current themselves: they are steered, it is watched" },
	[REASON_NO_EFFECT] = { "no-effect",
		"the group uses no large folios, whatever the switches say" },
	[REASON_DYING_CGROUPS] = { "dying-cgroups",
		"very many dying cgroups slow reclaim down: the pressure is not blamed on folios" },
	[REASON_NOT_MANAGED] = { "not-managed",
		"not named by Sizes=, or its file cannot be read: never touched" },
	[REASON_HELD] = { "held", "a hold freezes all switches" },
	[REASON_DROP_DENSITY] = { "drop-density",
		"the group is nearly full and uses little of each large folio: they are taken away" },
	[REASON_GATE_PROBE] = { "gate-probe",
		"large swap-ins are let through for a few seconds to see how much of them is used" },
	[REASON_GATE_OPEN] = { "gate-open",
		"large folios that come back from swap are used nearly whole: they are let through" },
	[REASON_GATE_SHUT] = { "gate-shut",
		"little of a large folio is used after it came back from swap: the kernel's own "
		"margin decides again" },
	[REASON_SMALL_GROUP] = { "small-group",
		"the group has less anonymous memory than SmallGroup=: small pages only" },
	[REASON_FRESH_START] = { "fresh-start",
		"most of the memory that was under pressure is gone: the old verdict goes with it" },
	[REASON_GIVEN_BACK] = { "given-back",
		"mthpd does not steer the group's own files any more: what stood there before is back" },
	[REASON_RATE_LIMITED] = { "rate-limited", "MaxChangesPerHour is used up: steps up wait" },
};

const char *reason_word(enum reason r)
{
	return r < REASON_MAX ? table[r].word : table[REASON_NONE].word;
}

const char *reason_text(enum reason r)
{
	return r < REASON_MAX ? table[r].text : table[REASON_NONE].text;
}
