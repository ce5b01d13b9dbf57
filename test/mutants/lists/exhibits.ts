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
    find: '    .update(bytesOf(sealed.previousSeal))\n',
    replace: '',
    killedBy: seal,
  },
  {
    name: 'exhibits: the number of a link is not in its seal',
    file: 'src/projections/exhibits/link-seal.ts',
    find: 'head.writeBigUInt64BE(BigInt(sealed.link), 3 + id.length);',
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
    find: 'reason: derivedSeal === link.seal && follows ? null : derived.reason',
    replace: 'reason: follows ? null : derived.reason',
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
    find: 'this.#named.set(exhibit.id, tenantOf(exhibit.path), exhibit);',
    replace: 'this.#named.set(exhibit.id, null, exhibit);',
    killedBy: ['test/projections/exhibits/names.test.ts'],
  },
  {
    name: 'receipts: another request under the key gets the first one’s reply',
    file: 'src/projections/receipts/commands.ts',
    find: 'if (done.request !== request || lastOfRequest !== last) throw otherRequest();',
    replace: '',
    killedBy: receipts,
  },
];
