/** Mistakes that would let a seal lie, a replay look elsewhere, or a write be done twice. */
import type { Mutant } from '../mutant.ts';

const replay = ['test/planner/exhibits/replay.test.ts'];
const exhibits = ['test/doors/http/exhibits.test.ts'];
const seal = ['test/projections/exhibits/seal.test.ts'];
const receipts = ['test/projections/receipts/receipts.test.ts'];
const extras = ['test/doors/http/ingest-extras.test.ts'];
const catalog = ['test/projections/catalog.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'exhibits: a seal does not cover the seal before it',
    file: 'src/projections/exhibits/seal.ts',
    find: '    .update(bytesOf(sealed.previousSeal))\n',
    replace: '',
    killedBy: seal,
  },
  {
    name: 'exhibits: the number of a link is not in its seal',
    file: 'src/projections/exhibits/seal.ts',
    find: 'head.writeBigUInt64BE(BigInt(sealed.link), 3 + id.length);',
    replace: '',
    killedBy: seal,
  },
  {
    name: 'exhibits: a replay reads the columns of now',
    file: 'src/projections/projections.ts',
    find: 'catalog: then, rows: new RowsOfThen(rows, then, stored)',
    replace: 'catalog: paths.catalog, rows: paths.rows',
    killedBy: replay,
  },
  {
    name: 'exhibits: a widened column reads back as it rests',
    file: 'src/projections/rows/rows-of-then.ts',
    find: 'changes.every((change) => change === null) ? blocks : changedBlocks(blocks, changes, further);',
    replace: 'changes.length >= 0 ? blocks : changedBlocks(blocks, changes, further);',
    killedBy: replay,
  },
  {
    name: 'exhibits: a branch’s types of then are those of now',
    file: 'src/projections/catalog/history.ts',
    find: 'step.position < position && step.tenant === of',
    replace: 'step.tenant === of',
    killedBy: replay,
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
    file: 'src/planner/exhibits/replay.ts',
    find: 'reason: derivedSeal === link.seal && follows ? null : derived.reason',
    replace: 'reason: follows ? null : derived.reason',
    killedBy: replay,
  },
  {
    name: 'exhibits: any removal excuses any difference',
    file: 'src/projections/exhibits/removals.ts',
    find: 'removal.position >= position && removal.least < position',
    replace: 'removal.least < position',
    killedBy: replay,
  },
  {
    name: 'exhibits: a replay runs under the scope of whoever asks for it',
    file: 'src/governance/granted-snapshot.ts',
    find: 'const caller = { ...deriver, principal, path, branch,',
    replace: 'const caller = { ...deriver, principal, branch,',
    killedBy: exhibits,
  },
  {
    name: 'exhibits: a recipe of a wider path is replayed from below',
    file: 'src/governance/exhibit-desk.ts',
    find: 'return sees(this.#parts.caller.path, link.path) && this.#parts.mayReplay(null);',
    replace: 'return this.#parts.mayReplay(null);',
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
    name: 'exhibits: a later tenant goes on with what an earlier one noted',
    file: 'src/projections/exhibits/commands.ts',
    find: 'known.links[0]!.time >= since ?',
    replace: 'known.links[0]!.time >= 0n ?',
    killedBy: ['test/projections/exhibits/names.test.ts'],
  },
  {
    name: 'exhibits: an exhibit is everybody’s to find',
    file: 'src/governance/exhibit-desk.ts',
    find: '      sees(caller.path, exhibit.path) &&\n',
    replace: '',
    killedBy: exhibits,
  },
  {
    name: 'exhibits: whoever may see a link may replay it',
    file: 'src/governance/exhibit-desk.ts',
    find: 'return sees(this.#parts.caller.path, link.path) && this.#parts.mayReplay(null);',
    replace: 'return sees(this.#parts.caller.path, link.path);',
    killedBy: replay,
  },
  {
    name: 'exhibits: what reads lookup tables is sealed',
    file: 'src/planner/exhibits/derivable.ts',
    find: "if (kind === 'call' && name === 'LOOKUP') lookups = true;",
    replace: '',
    killedBy: exhibits,
  },
  {
    name: 'receipts: another request under the key gets the first one’s reply',
    file: 'src/projections/receipts/commands.ts',
    find: 'if (done.request !== request || lastOfRequest !== last) throw otherRequest();',
    replace: '',
    killedBy: receipts,
  },
  {
    name: 'receipts: a request goes on beyond its end',
    file: 'src/projections/receipts/commands.ts',
    find: ' || known?.complete === true) throw otherRequest();',
    replace: ') throw otherRequest();',
    killedBy: receipts,
  },
  {
    name: 'receipts: a key is kept for ever',
    file: 'src/projections/receipts/projection.ts',
    find: 'return known && instant - known.time <= keptNanoseconds ? known : undefined;',
    replace: 'return known;',
    killedBy: receipts,
  },
  {
    name: 'receipts: a key is everybody’s',
    file: 'src/doors/http/routes/ingest.ts',
    find: 'canonicalJson([principal, path, key])',
    replace: 'canonicalJson([key])',
    killedBy: extras,
  },
  {
    name: 'receipts: a request is its body alone',
    file: 'src/doors/http/routes/ingest.ts',
    find: 'new BodyDigest(preface(invocation, asked))',
    replace: "new BodyDigest('')",
    killedBy: extras,
  },
  {
    name: 'lineage: all rows of a body have that of the first',
    file: 'src/projections/rows/row-provenance.ts',
    find: 'while (end < length && codeOf(end) === codeOf(first)) end++;',
    replace: 'end = length;',
    killedBy: extras,
  },
  {
    name: 'tasks: a task is everybody’s to ask for',
    file: 'src/doors/ingest-tasks.ts',
    find: 'if (task === undefined || !sees(caller.path, task.path))',
    replace: 'if (task === undefined)',
    killedBy: extras,
  },
  {
    name: 'tasks: a bomb unpacks to its end',
    file: 'src/doors/http/content-encoding.ts',
    find: 'if (came > Math.max(freeBytes, sent * ratioMax)) {',
    replace: 'if (came < 0) {',
    killedBy: extras,
  },
  {
    name: 'catalog: a step of a migration does not see the one before',
    file: 'src/projections/catalog/migration.ts',
    find: 'type: (name) => made.get(name) ?? catalog.type(name),',
    replace: 'type: (name) => catalog.type(name),',
    killedBy: catalog,
  },
];
