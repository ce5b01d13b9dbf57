/** Mistakes by which something of an erased subject would stay, come back, or take somebody else's along. */
import type { Mutant } from '../mutant.ts';

const erasure = ['test/projections/erasure.test.ts'];
const retention = ['test/projections/retention/retention.test.ts'];
const digests = ['test/governance/erasure/digests.test.ts'];
const overtaken = ['test/governance/erasure/overtaken.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'erasure: an answer that it overtook is given',
    file: 'src/planner/planner.ts',
    find: 'if (overtaken()) {',
    replace: 'if (plan.facets && overtaken()) {',
    killedBy: overtaken,
  },
  {
    name: 'erasure: only main is erased',
    file: 'src/projections/rows/projection.ts',
    find: "for (const layer of this.#layers.values()) layer.table(tenant, type)?.remove(positions, 'later');",
    replace: "this.#layer(0).table(tenant, type)?.remove(positions, 'later');",
    killedBy: erasure,
  },
  {
    name: 'erasure: a key falls back to a version that goes as well',
    file: 'src/projections/rows/keys/key-removal.ts',
    find: 'while (heir !== NO_ROW && going.has(heir)) heir = table.previousOf(heir);',
    replace: '',
    killedBy: erasure,
  },
  {
    name: 'erasure: rows that came without their keys close nothing',
    file: 'src/projections/rows/tables/table.ts',
    find: '      this.segmentOf(row).close(row & 0xffff, position);\n      closed++;',
    replace: '      closed++;',
    killedBy: erasure,
  },
  {
    name: 'erasure: rows that came without their keys can be seen',
    file: 'src/projections/rows/tables/table.ts',
    find: '          segment.drop(first + i);\n',
    replace: '',
    killedBy: erasure,
  },
  {
    name: 'erasure: a start takes versions before an erased one for superseded',
    file: 'src/projections/rows/keys/key-index-restore.ts',
    find: 'let row = segment.isRemoved(at) ? NO_ROW : previous.codeAt(at);',
    replace: 'let row = previous.codeAt(at);',
    killedBy: erasure,
  },
  {
    name: 'erasure: a string stays in its dictionary',
    file: 'src/projections/rows/segments/segment-column.ts',
    find: "if (this.#cells.layout === 'dict' && nulls![row] !== 1) this.#dictionary!.release(this.#cells.i32[row]!);",
    replace: '',
    killedBy: erasure,
  },
  {
    name: 'erasure: text stays in its heap',
    file: 'src/projections/rows/segments/segment-column.ts',
    find: "if (this.#cells.layout === 'text') this.#cells.heap.fill(0, this.#cells.offsets[row]!, this.#cells.offsets[row + 1]!);",
    replace: "if (this.#cells.layout === 'text') continue;",
    killedBy: erasure,
  },
  {
    name: 'erasure: a file of before is not written again',
    file: 'src/projections/rows/segments/segment-columns.ts',
    find: '    for (const { column } of this.#copies()) column.clear(rows);\n    this.#markChanged();',
    replace: '    for (const { column } of this.#copies()) column.clear(rows);',
    killedBy: erasure,
  },
  {
    name: 'erasure: versions of a subject are looked for on main only',
    file: 'src/projections/rows/projection.ts',
    find: 'this.timeline.end, this.#byFork(), this.#scopes',
    replace: 'this.timeline.end, [this.#layer(0)], this.#scopes',
    killedBy: erasure,
  },
  {
    name: 'erasure: a branch forgets whose rows the types of its source are',
    file: 'src/projections/rows/tables/branch-layer.ts',
    find: 'this.names = names.copy();',
    replace: 'this.names = id === 0 ? names : new ScopedNames();',
    killedBy: erasure,
  },
  {
    name: 'erasure: what ends or patches a row made from others is sealed for nobody',
    file: 'src/projections/rows/checks/source-seals.ts',
    find: 'for (const name of this.#namesBefore(table, position, naming)) names.add(name);',
    replace: 'continue;',
    killedBy: ['test/projections/rows/checks/row-subjects.test.ts'],
  },
  {
    name: 'erasure: a row whose source rests on somebody’s is sealed for nobody',
    file: 'src/projections/rows/checks/source-seals.ts',
    find: 'namesIn(versions.cellOf(version, column))) seen.add(name);',
    replace: 'namesIn(versions.cellOf(version, column))) void name;',
    killedBy: ['test/projections/rows/checks/row-subjects.test.ts'],
  },
  {
    name: 'erasure: the seal of a row that was made from others stays',
    file: 'src/projections/rows/erasure/derived-versions.ts',
    find: 'this.#subjects.add(ownSubject(type',
    replace: 'void (ownSubject(type',
    killedBy: ['test/erasure/scan.test.ts'],
  },
  {
    name: 'erasure: a run that goes on has no words to look for',
    file: 'src/governance/erasure/subject-erasure.ts',
    find: 'const saved = sealed === null ? null : this.#parts.seals.open(sealed);',
    replace: 'const saved = sealed === null || this.#awaited.size === 0 ? null : this.#parts.seals.open(sealed);',
    killedBy: ['test/governance/erasure/words.test.ts'],
  },
  {
    name: 'erasure: words can be read beyond the certificate',
    file: 'src/governance/erasure/subject-erasure.ts',
    find: 'if (sealed !== null) await keys.destroy(sealedKeyOf(sealed), id);',
    replace: '',
    killedBy: ['test/governance/erasure/words.test.ts'],
  },
  {
    name: 'erasure: an intent takes what is held',
    file: 'src/projections/erasures/commands.ts',
    find: 'if (held.length > 0) {',
    replace: 'if (held.length > 1000) {',
    killedBy: retention,
  },
  {
    name: 'erasure: a schedule runs out although its row is held',
    file: 'src/projections/retention/commands.ts',
    find: 'if (ids.length > 0) throw',
    replace: 'if (ids.length > 1) throw',
    killedBy: retention,
  },
  {
    name: 'erasure: a purge takes what is held',
    file: 'src/projections/tenants/purge.ts',
    find: 'if (held.length > 0) throw',
    replace: 'if (held.length > 1) throw',
    killedBy: retention,
  },
  {
    name: 'erasure: what was removed gets into files',
    file: 'src/projections/rows/segments/segment-columns.ts',
    find: '    this.wipe();\n    return {',
    replace: '    return {',
    killedBy: erasure,
  },
  {
    name: 'erasure: a digest counts what was removed before',
    file: 'src/projections/rows/erasure/version-digests.ts',
    find: 'let removed = segment.removedAtOrAfter(first);',
    replace: 'let removed = segment.length;',
    killedBy: digests,
  },
  {
    name: 'erasure: answers on their way go on',
    file: 'src/planner/planner.ts',
    find: '        overtaken,\n',
    replace: '        overtaken: () => false,\n',
    killedBy: ['test/doors/http/erasure.test.ts'],
  },
];
