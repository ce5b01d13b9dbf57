/** Mistakes that would let a seal lie, a replay look elsewhere, or a write be done twice. */
import type { Mutant } from '../mutant.ts';

const replay = ['test/planner/exhibits/replay.test.ts'];
const exhibits = ['test/doors/http/exhibits.test.ts'];
const seal = ['test/projections/exhibits/link-seal.test.ts'];
const receipts = ['test/projections/receipts/receipts.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'exhibits: a seal does not cover the seal before it',
    file: 'src/projections/exhibits/link-seal.ts',
    find: '    .update(hashBytesOf(sealedLink.previousSeal))\n',
    replace: '',
    killedBy: seal,
  },
  {
    name: 'exhibits: the number of a link is not in its seal',
    file: 'src/projections/exhibits/link-seal.ts',
    find: 'sealHead.writeBigUInt64BE(BigInt(sealedLink.link), 3 + exhibitId.length);',
    replace: '',
    killedBy: seal,
  },
  {
    name: 'exhibits: a replay is of what is known now',
    file: 'src/projections/projections.ts',
    find: 'const position = this.timeline.positionAfter(instant);',
    replace: 'const position = this.timeline.end;',
    killedBy: replay,
  },
  {
    name: 'exhibits: a forged link is said to match',
    file: 'src/planner/control/replay.ts',
    find: 'reason: derivedSeal === link.seal && followsPrevious ? null : derivedAnswer.reason',
    replace: 'reason: followsPrevious ? null : derivedAnswer.reason',
    killedBy: replay,
  },
  {
    name: 'exhibits: a replay runs under the scope of whoever asks for it',
    file: 'src/governance/reading/governed-snapshot.ts',
    find: 'const caller = { ...deriver, principal, path, branch,',
    replace: 'const caller = { ...deriver, principal, branch,',
    killedBy: exhibits,
  },
  {
    name: 'exhibits: an id is taken for every tenant',
    file: 'src/projections/exhibits/projection.ts',
    find: 'this.#exhibitsById.set(exhibit.id, tenantOf(exhibit.path), exhibit);',
    replace: 'this.#exhibitsById.set(exhibit.id, null, exhibit);',
    killedBy: ['test/projections/exhibits/names.test.ts'],
  },
  {
    name: 'receipts: another request under the key gets the first one’s reply',
    file: 'src/projections/receipts/commands.ts',
    find: 'if (receiptedBatch.request !== request || lastOfRequest !== isLastBatch) throw otherRequestError();',
    replace: '',
    killedBy: receipts,
  },
];
