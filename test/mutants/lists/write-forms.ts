/** Patches, conditions, batches and edges. */
import type { Mutant } from '../mutant.ts';

const gate = ['test/governance/write-forms.test.ts'];
const doors = ['test/doors/http/conditional-writes.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'write forms: what is not sent is NULL',
    file: 'src/projections/rows/row-cells.ts',
    find: 'else merged.push(base === null ? null : this.cell(base, name));',
    replace: 'else merged.push(null);',
    killedBy: doors,
  },
  {
    name: 'write forms: a null that was sent is not written',
    file: 'src/projections/rows/row-cells.ts',
    find: 'return flags[row] === 1;',
    replace: 'return flags[row] === 1 && this.#own.has(name);',
    killedBy: doors,
  },
  {
    name: 'write forms: a patch is judged by what it sends',
    file: 'src/projections/rows/row-by-row.ts',
    find: 'if (permitted(this.#test, version, place)[0] === 0)',
    replace: 'if (false)',
    killedBy: gate,
  },
  {
    name: 'write forms: whoever read the row before the last write may write it',
    file: 'src/projections/rows/conditions.ts',
    find: 'return isUnchanged ? null',
    replace: 'return newest >= 0 ? null',
    killedBy: doors,
  },
  {
    name: 'write forms: what comes after a row that replaces it stays',
    file: 'src/projections/rows/row-by-row.ts',
    find: 'if (put.replace) return plan.replace(own, from, to, open);',
    replace: '',
    killedBy: doors,
  },
  {
    name: 'write forms: a masked column is copied',
    file: 'src/governance/governed-writes.ts',
    find: 'this.#checkSources(part);',
    replace: '',
    killedBy: gate,
  },
  {
    name: 'write forms: a batch is written as far as it goes',
    file: 'src/projections/rows/batch.ts',
    find: 'return decidePut({ ...step, atomic: true }, made, rows, context, at);',
    replace: 'return decidePut(step, made, rows, context, at);',
    killedBy: gate,
  },
  {
    name: 'write forms: steps of a batch are not judged',
    file: 'src/projections/rows/batch.ts',
    find: 'const own = { ...context, ...context.ofStep?.(step) };',
    replace: 'const own = context;',
    killedBy: gate,
  },
  {
    name: 'write forms: edges are written by whoever may write their rows',
    file: 'src/projections/rows/link-rows.ts',
    find: 'if (permitted(this.#test, batch, place).includes(0)) return notPermitted;',
    replace: '',
    killedBy: gate,
  },
  {
    name: 'write forms: an edge outlives its row',
    file: 'src/projections/rows/commands.ts',
    find: 'const bodies = [removalOf(known, keys, context.entry.path, rows), ...edges.bodies()];',
    replace: 'const bodies = [removalOf(known, keys, context.entry.path, rows)];',
    killedBy: doors,
  },
  {
    name: 'write forms: an edge of ends that its row has no more stays',
    file: 'src/projections/rows/edges.ts',
    find: 'if (ended.length === 0) return null;',
    replace: 'return null;',
    killedBy: doors,
  },
  {
    name: 'write forms: an edge is nobody’s',
    file: 'src/projections/rows/edges.ts',
    find: 'subject: this.#subjectOf(cells),',
    replace: 'subject: null,',
    killedBy: doors,
  },
  {
    name: 'write forms: edges of a guarded type are open',
    file: 'src/projections/rows/link-type.ts',
    find: 'known?.protected === true || source?.protected === true',
    replace: 'known?.protected === true',
    killedBy: doors,
  },
];
