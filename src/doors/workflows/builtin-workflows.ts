/** Workflows that every store has. */
import type { BuiltinWorkflow } from '../../governance/jobs/workflow-desk.ts';

export const builtinWorkflows: readonly BuiltinWorkflow[] = [];
