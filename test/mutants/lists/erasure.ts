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
    find: "for (const branchLayer of this.#branchLayers.values()) branchLayer.table(tenant, type)?.remove(positions, 'later');",
    replace: "this.#branchLayer(0).table(tenant, type)?.remove(positions, 'later');",
    killedBy: erasure,
  },
  {
    name: 'erasure: a key falls back to a version that goes as well',
    file: 'src/projections/rows/keys/key-removal.ts',
    find: 'while (heirRow !== NO_ROW && removedRows.has(heirRow)) heirRow = table.previousOf(heirRow);',
    replace: '',
    killedBy: erasure,
  },
  {
    name: 'erasure: rows that came without their keys close nothing',
    file: 'src/projections/rows/tables/table.ts',
    find: '      this.segmentOf(closedRow).close(closedRow & 0xffff, position);\n      closedCount++;',
    replace: '      closedCount++;',
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
    find: 'let earlierRow = segment.isRemoved(at) ? NO_ROW : previous.codeAt(at);',
    replace: 'let earlierRow = previous.codeAt(at);',
    killedBy: erasure,
  },
  {
    name: 'erasure: a string stays in its dictionary',
    file: 'src/projections/rows/segments/segment-column.ts',
    find: "if (this.#columnCells.layout === 'dict' && clearedNulls![clearedRow] !== 1) this.#columnDictionary!.release(this.#columnCells.i32[clearedRow]!);",
    replace: '',
    killedBy: erasure,
  },
  {
    name: 'erasure: text stays in its heap',
    file: 'src/projections/rows/segments/segment-column.ts',
    find: "if (this.#columnCells.layout === 'text') this.#columnCells.heap.fill(0, this.#columnCells.offsets[clearedRow]!, this.#columnCells.offsets[clearedRow + 1]!);",
    replace: "if (this.#columnCells.layout === 'text') continue;",
    killedBy: erasure,
  },
  {
    name: 'erasure: a file of before is not written again',
    file: 'src/projections/rows/segments/segment-columns.ts',
    find: '    for (const { column: columnCopy } of this.#columnCopies()) columnCopy.clear(rows);\n    this.#markColumnsChanged();',
    replace: '    for (const { column: columnCopy } of this.#columnCopies()) columnCopy.clear(rows);',
    killedBy: erasure,
  },
  {
    name: 'erasure: versions of a subject are looked for on main only',
    file: 'src/projections/rows/projection.ts',
    find: 'this.timeline.end, this.#layersByFork(), this.#organisationCodes',
    replace: 'this.timeline.end, [this.#branchLayer(0)], this.#organisationCodes',
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
    find: 'for (const sourceName of this.#namesBefore(sourceTable, position, namingColumnList)) sourceNames.add(sourceName);',
    replace: 'continue;',
    killedBy: ['test/projections/rows/checks/row-subjects.test.ts'],
  },
  {
    name: 'erasure: a row whose source rests on somebody’s is sealed for nobody',
    file: 'src/projections/rows/checks/source-seals.ts',
    find: 'namesIn(versions.cellOf(sourceVersion, column))) seenIds.add(name);',
    replace: 'namesIn(versions.cellOf(sourceVersion, column))) void name;',
    killedBy: ['test/projections/rows/checks/row-subjects.test.ts'],
  },
  {
    name: 'erasure: the seal of a row that was made from others stays',
    file: 'src/projections/rows/erasure/derived-versions.ts',
    find: 'this.#derivedSubjects.add(ownSubject(type',
    replace: 'void (ownSubject(type',
    killedBy: ['test/erasure/scan.test.ts'],
  },
  {
    name: 'erasure: a run that goes on has no words to look for',
    file: 'src/governance/erasure/subject-erasure.ts',
    find: 'const savedWords = sealedWords === null ? null : this.#erasureParts.seals.open(sealedWords);',
    replace:
      'const savedWords = sealedWords === null || this.#awaitedErasures.size === 0 ? null : this.#erasureParts.seals.open(sealedWords);',
    killedBy: ['test/governance/erasure/words.test.ts'],
  },
  {
    name: 'erasure: words can be read beyond the certificate',
    file: 'src/governance/erasure/subject-erasure.ts',
    find: 'if (sealedWords !== null) await keys.destroy(sealedKeyOf(sealedWords), id);',
    replace: '',
    killedBy: ['test/governance/erasure/words.test.ts'],
  },
  {
    name: 'erasure: an intent takes what is held',
    file: 'src/projections/erasures/commands.ts',
    find: 'if (holdIds.length > 0) {',
    replace: 'if (holdIds.length > 1000) {',
    killedBy: retention,
  },
  {
    name: 'erasure: a schedule runs out although its row is held',
    file: 'src/projections/retention/commands.ts',
    find: 'if (holdIds.length > 0) throw',
    replace: 'if (holdIds.length > 1) throw',
    killedBy: retention,
  },
  {
    name: 'erasure: a purge takes what is held',
    file: 'src/projections/tenants/purge.ts',
    find: 'if (holdIds.length > 0) throw',
    replace: 'if (holdIds.length > 1) throw',
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
    find: 'let removedRow = segment.removedAtOrAfter(blockFirstRow);',
    replace: 'let removedRow = segment.length;',
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
