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
  const batchRowCount = steps.reduce(
    (sum, batchStep) => sum + (batchStep.kind === 'put-rows' ? batchStep.rows.length : batchStep.keys.length),
    0,
  );
  if (batchRowCount > batchRowsMax || steps.length > batchRowsMax) {
    throw new ServiceError(
      'REL_INVALID',
      `a batch has at most ${batchRowsMax} rows; this one has ${Math.max(batchRowCount, steps.length)}`,
    );
  }
  const batchDrafts: EntryDraft[] = [];
  const draftedTypes = new DraftedTypes(catalog);
  const writtenKeys = new WrittenKeys();
  const batchSeals = new SourceSeals(draftedTypes, rows);
  const stepOutcomes: Decision['outcome'][] = [];
  let [position, time] = [next.position, next.time];
  steps.forEach((batchStep, stepNumber) => {
    const stepContext = { ...context, ...context.ofStep?.(batchStep), seals: batchSeals };
    const stepDecision = namingStepInError(stepNumber, () =>
      decideBatchStep(batchStep, draftedTypes, rows, stepContext, { position, time }),
    );
    for (const stepDraft of stepDecision.drafts) {
      if (stepDraft.body.kind === 'type') {
        refuseWidenedTwice(stepDraft.body.definition, draftedTypes.madeType(stepDraft.body.definition.name));
        draftedTypes.add(stepDraft.body.definition);
      }
      if (stepDraft.body.kind === 'rows') {
        writtenKeys.add(stepNumber, stepDraft.body.type, stepDraft.body.keys.columns[0]!.vector, stepDraft.body.ops.length);
        batchSeals.note(stepDraft.body);
      }
      batchDrafts.push(stepDraft);
      const takenPositions = positionsOf(stepDraft.body);
      position += takenPositions;
      time += BigInt(takenPositions);
    }
    stepOutcomes.push(stepDecision.outcome);
  });
  const hasDrafts = batchDrafts.length > 0;
  const batchIds = stepOutcomes.flatMap((outcome) => outcome.ids);
  return {
    drafts: batchDrafts,
    outcome: {
      kind: 'batch',
      accepted: stepOutcomes.reduce((sum, { accepted }) => sum + accepted, 0),
      rejected: 0,
      errors: [],
      ids: batchIds.slice(0, outcomeLimits.idsListed),
      idsTruncated: batchIds.length > outcomeLimits.idsListed || stepOutcomes.some(({ idsTruncated }) => idsTruncated),
      systemFrom: hasDrafts ? next.time : 0n,
      systemFromLast: hasDrafts ? time - 1n : 0n,
      changed: hasDrafts,
      steps: stepOutcomes,
    },
  };
}

function decideBatchStep(
  batchStep: PutRows | DeleteRows,
  draftedTypes: DraftedTypes,
  rows: TenantRows,
  context: DecideContext,
  at: NextPosition,
): Decision {
  if (batchStep.kind === 'delete-rows') {
    const deleteDecision = decideDelete(batchStep, draftedTypes, rows, context, at);
    const [refusedKey] = deleteDecision.outcome.errors;
    if (refusedKey !== undefined)
      throw new ServiceError(refusedKey.code as ErrorCode, `key ${refusedKey.index}: ${refusedKey.detail}`);
    return deleteDecision;
  }
  if (batchStep.receipt !== undefined) throw new ServiceError('REL_INVALID', 'a step of a batch has no receipt of its own');
  return decidePut({ ...batchStep, atomic: true }, draftedTypes, rows, context, at);
}

/** Adds the number of the step to its refusal. */
function namingStepInError(stepNumber: number, decideOneStep: () => Decision): Decision {
  try {
    return decideOneStep();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    throw new ServiceError(error.code, `step ${stepNumber}: ${error.message}`, { ...error.facts, step: stepNumber });
  }
}

/** Rows of an earlier step are not stored yet, so it is unknown whether they would fit a wider column. */
function refuseWidenedTwice(definition: TypeDefinition, definitionBefore: TypeDefinition | undefined): void {
  const widenedColumn = Object.keys(definitionBefore?.properties ?? {}).find(
    (name) => definitionBefore!.properties[name]!.type !== definition.properties[name]!.type,
  );
  if (widenedColumn === undefined) return;
  const quotedColumn = `${JSON.stringify(widenedColumn)} of ${JSON.stringify(definition.name)}`;
  throw new ServiceError('REL_CONFLICT', `two steps of the batch write ${quotedColumn} as different types`);
}

/** Each key is one step's. */
class WrittenKeys {
  readonly #stepsByWrittenKey = new Map<string, number>();

  add(step: number, type: string, keyVector: Parameters<typeof cellAt>[0], length: number): void {
    for (let row = 0; row < length; row++) {
      const writtenKey = `${type}\0${String(cellAt(keyVector, 'string', row))}`;
      const otherStep = this.#stepsByWrittenKey.get(writtenKey);
      if (otherStep !== undefined && otherStep !== step) {
        throw new ServiceError(
          'REL_INVALID',
          `steps ${otherStep} and ${step} of the batch write the same row: put it into one of them`,
        );
      }
      this.#stepsByWrittenKey.set(writtenKey, step);
    }
  }
}
