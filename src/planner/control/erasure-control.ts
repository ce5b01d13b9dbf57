/** ERASE SUBJECT '<subject>' REASON '<reason>' [CERTIFY]: one row about the erasure, with the receipt where it was asked for. */
import { smallAnswer } from '../execution/small-answer.ts';
import type { ControlRequest } from './control-request.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Answer, OutputColumn } from '../planner-contract.ts';

const erasureColumns: readonly OutputColumn[] = [
  { name: 'erasure_id', type: 'string' },
  { name: 'versions', type: 'integer' },
  { name: 'certified', type: 'boolean' },
  { name: 'receipt', type: 'json' },
  { name: 'salt', type: 'string' },
  { name: 'verification_key', type: 'string' },
];

/** The answer waits for the certificate, however long that takes, and a client that goes away ends nothing. */
export async function eraseSubject({
  statement,
  literals,
  invocation,
  continuous,
  clock,
  startedMs,
}: ControlRequest): Promise<Answer> {
  const erasureDesk = continuous?.erasures ?? null;
  if (erasureDesk === null) throw errorAt('REL_NOT_IMPLEMENTED', 'ERASE SUBJECT is not offered here', statement.location);
  const [subject, reason] = statement.arguments.map(({ slot }) => String(literals[slot])) as [string, string];
  const isCertified = statement.names.includes('CERTIFY');
  const erased = await erasureDesk.erase(invocation, { subject, reason, certify: isCertified });
  const erasureRow = [
    erased.id,
    BigInt(erased.versions),
    erased.certified,
    erased.receipt === null ? null : JSON.stringify(erased.receipt),
    erased.salt,
    erased.verificationKey,
  ];
  invocation.describe({ costUnits: 1 });
  return smallAnswer(erasureColumns, [erasureRow], {
    asOfSystem: clock.now(),
    costUnits: 1,
    processingTimeMs: clock.monotonicMs() - startedMs,
  });
}
