/** The principal that a step of a workflow waits for, from the steps as they stand in its record: they were checked when it was made. */
import type { Json } from '../../log/values/canonical-json.ts';

interface StoredWorkflowStep {
  readonly approve?: { readonly principal: string };
  readonly for_each?: { readonly steps: readonly StoredWorkflowStep[] };
  readonly if?: { readonly then: readonly StoredWorkflowStep[]; readonly else?: readonly StoredWorkflowStep[] };
}

/** `stepPath`: numbers of steps, and of items and branches between them. null: nobody is to approve it. */
export function approverOf(workflowSteps: Json, stepPath: string): string | null {
  const stepNumbers = stepPath.split('.').map(Number);
  let storedStep: StoredWorkflowStep | undefined = (workflowSteps as unknown as readonly StoredWorkflowStep[])[
    stepNumbers.shift()!
  ];
  while (storedStep !== undefined && stepNumbers.length > 0) {
    const blockOrdinal = stepNumbers.shift()!;
    const stepBlock: readonly StoredWorkflowStep[] | undefined =
      storedStep.for_each?.steps ?? (blockOrdinal === 0 ? storedStep.if?.then : storedStep.if?.else);
    storedStep = stepBlock?.[stepNumbers.shift()!];
  }
  return storedStep?.approve?.principal ?? null;
}
