/** The principal that a step of a workflow waits for, from the steps as they stand in its record: they were checked when it was made. */
import type { Json } from '../../log/values/canonical-json.ts';

interface StoredStep {
  readonly approve?: { readonly principal: string };
  readonly for_each?: { readonly steps: readonly StoredStep[] };
  readonly if?: { readonly then: readonly StoredStep[]; readonly else?: readonly StoredStep[] };
}

/** `path`: numbers of steps, and of items and branches between them. null: nobody is to approve it. */
export function approverOf(steps: Json, path: string): string | null {
  const numbers = path.split('.').map(Number);
  let step: StoredStep | undefined = (steps as unknown as readonly StoredStep[])[numbers.shift()!];
  while (step !== undefined && numbers.length > 0) {
    const nth = numbers.shift()!;
    const block: readonly StoredStep[] | undefined = step.for_each?.steps ?? (nth === 0 ? step.if?.then : step.if?.else);
    step = block?.[numbers.shift()!];
  }
  return step?.approve?.principal ?? null;
}
