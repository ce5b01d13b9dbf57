/** INSERT, UPDATE and DELETE. */
import type { Mutant } from '../mutant.ts';

const governed = ['test/planner/writes/governed.test.ts'];
const conformance = ['test/planner/writes/conformance.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'SQL writes: rows of other paths are patched',
    file: 'src/planner/writes/write-queries.ts',
    find: 'where: both(where, ownPath(target, nullSlot, path))',
    replace: 'where',
    killedBy: governed,
  },
  {
    name: 'SQL writes: what is masked is read',
    file: 'src/planner/writes/write.ts',
    find: 'if (masked !== undefined) throw maskedColumn(type, masked);',
    replace: '',
    killedBy: governed,
  },
  {
    name: 'SQL writes: what is masked is returned',
    file: 'src/planner/writes/returning.ts',
    find: 'if (masked !== undefined) throw maskedColumn(target.type, masked.name);',
    replace: '',
    killedBy: governed,
  },
  {
    name: 'SQL writes: RETURNING shows rows to who may not read',
    file: 'src/planner/writes/write.ts',
    find: 'if (!mayShow(statement.target.type, caller.path)) {',
    replace: 'if (false) {',
    killedBy: governed,
  },
  {
    name: 'SQL writes: a row that is refused is left out',
    file: 'src/planner/writes/write.ts',
    find: 'if (refused !== undefined) {',
    replace: 'if (false) {',
    killedBy: conformance,
  },
  {
    name: 'SQL writes: INSERT replaces what is there',
    file: 'src/planner/writes/write.ts',
    find: "      when: 'absent',\n      ...(conflict !== null",
    replace: '      ...(conflict !== null',
    killedBy: conformance,
  },
  {
    name: 'SQL writes: what was written since the rows were read is overwritten',
    file: 'src/planner/writes/write.ts',
    find: 'patch, when: { unchangedSince: this.#snapshot.instant, exceptOwn: true }',
    replace: 'patch',
    killedBy: conformance,
  },
  {
    name: 'SQL writes: a row that FROM meets twice is written twice',
    file: 'src/planner/writes/found-rows.ts',
    find: 'if (this.#keys.has(key)) continue;',
    replace: '',
    killedBy: conformance,
  },
];
