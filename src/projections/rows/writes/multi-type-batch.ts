/** Rows of several types at once: every step is decided on what stood before the batch, and all of them are one append or none. Pure. */
import { type ErrorCode, ServiceError } from '../../../errors.ts';
import { type EntryDraft, positionsOf, type TypeDefinition } from '../../../log/entries/entry.ts';
import type { NextPosition } from '../../../log/log-store.ts';
import { cellAt } from '../../../log/values/vector-builder.ts';
import type { CatalogReader } from '../../access-paths.ts';
import { DraftedTypes } from '../../catalog/drafted-types.ts';
import { type Batch, batchRowsMax, type DeleteRows, type PutRows } from '../../command.ts';
import { type DecideContext, type Decision, outcomeLimits } from '../../decision.ts';
import type { TenantRows } from '../tables/tenant-rows.ts';
import { SourceSeals } from '../checks/source-seals.ts';
import { decideDelete, decidePut } from './commands.ts';

export function decideMultiTypeBatch(
  { steps }: Batch,
  catalog: CatalogReader,
  rows: TenantRows,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const size = steps.reduce((sum, step) => sum + (step.kind === 'put-rows' ? step.rows.length : step.keys.length), 0);
  if (size > batchRowsMax || steps.length > batchRowsMax) {
    throw new ServiceError(
      'REL_INVALID',
      `a batch has at most ${batchRowsMax} rows; this one has ${Math.max(size, steps.length)}`,
    );
  }
  const drafts: EntryDraft[] = [];
  const draftedTypes = new DraftedTypes(catalog);
  const keys = new WrittenKeys();
  const seals = new SourceSeals(draftedTypes, rows);
  const outcomes: Decision['outcome'][] = [];
  let [position, time] = [next.position, next.time];
  steps.forEach((step, number) => {
    const own = { ...context, ...context.ofStep?.(step), seals };
    const decision = refusing(number, () => decideStep(step, draftedTypes, rows, own, { position, time }));
    for (const draft of decision.drafts) {
      if (draft.body.kind === 'type') {
        refuseWidened(draft.body.definition, draftedTypes.madeType(draft.body.definition.name));
        draftedTypes.add(draft.body.definition);
      }
      if (draft.body.kind === 'rows') {
        keys.add(number, draft.body.type, draft.body.keys.columns[0]!.vector, draft.body.ops.length);
        seals.note(draft.body);
      }
      drafts.push(draft);
      const taken = positionsOf(draft.body);
      position += taken;
      time += BigInt(taken);
    }
    outcomes.push(decision.outcome);
  });
  const changed = drafts.length > 0;
  const ids = outcomes.flatMap((outcome) => outcome.ids);
  return {
    drafts,
    outcome: {
      kind: 'batch',
      accepted: outcomes.reduce((sum, { accepted }) => sum + accepted, 0),
      rejected: 0,
      errors: [],
      ids: ids.slice(0, outcomeLimits.idsListed),
      idsTruncated: ids.length > outcomeLimits.idsListed || outcomes.some(({ idsTruncated }) => idsTruncated),
      systemFrom: changed ? next.time : 0n,
      systemFromLast: changed ? time - 1n : 0n,
      changed,
      steps: outcomes,
    },
  };
}

function decideStep(
  step: PutRows | DeleteRows,
  draftedTypes: DraftedTypes,
  rows: TenantRows,
  context: DecideContext,
  at: NextPosition,
): Decision {
  if (step.kind === 'delete-rows') {
    const decision = decideDelete(step, draftedTypes, rows, context, at);
    const [refused] = decision.outcome.errors;
    if (refused !== undefined) throw new ServiceError(refused.code as ErrorCode, `key ${refused.index}: ${refused.detail}`);
    return decision;
  }
  if (step.receipt !== undefined) throw new ServiceError('REL_INVALID', 'a step of a batch has no receipt of its own');
  return decidePut({ ...step, atomic: true }, draftedTypes, rows, context, at);
}

/** Adds the number of the step to its refusal. */
function refusing(number: number, decide: () => Decision): Decision {
  try {
    return decide();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new ServiceError(error.code, `step ${number}: ${error.message}`, { ...error.facts, step: number });
  }
}

/** Rows of an earlier step are not stored yet, so it is unknown whether they would fit a wider column. */
function refuseWidened(definition: TypeDefinition, before: TypeDefinition | undefined): void {
  const widened = Object.keys(before?.properties ?? {}).find(
    (name) => before!.properties[name]!.type !== definition.properties[name]!.type,
  );
  if (widened === undefined) return;
  const column = `${JSON.stringify(widened)} of ${JSON.stringify(definition.name)}`;
  throw new ServiceError('REL_CONFLICT', `two steps of the batch write ${column} as different types`);
}

/** Each key is one step's. */
class WrittenKeys {
  readonly #steps = new Map<string, number>();

  add(step: number, type: string, keys: Parameters<typeof cellAt>[0], length: number): void {
    for (let row = 0; row < length; row++) {
      const name = `${type}\0${String(cellAt(keys, 'string', row))}`;
      const other = this.#steps.get(name);
      if (other !== undefined && other !== step) {
        throw new ServiceError(
          'REL_INVALID',
          `steps ${other} and ${step} of the batch write the same row: put it into one of them`,
        );
      }
      this.#steps.set(name, step);
    }
  }
}
