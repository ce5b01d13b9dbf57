/**
 * The whole leak matrix. Prints the red cells of each group as it ends, and its figures as one line of JSON; exits 1 when a cell is red.
 *
 *   npm run leaks -- [--each] [--regime open|governed] [--adversary <part of a name>] [--difference <part of a name>]
 *
 * Differences are asked about together, then those that move commitments to the whole store by themselves; `--each` asks
 * about every one by itself, which tells whose a red cell is.
 */
import { parseArgs } from 'node:util';
import { differences, together } from './differences.ts';
import { Matrix } from './matrix.ts';

const { values: options } = parseArgs({
  options: {
    each: { type: 'boolean', default: false },
    regime: { type: 'string', default: '' },
    adversary: { type: 'string', default: '' },
    difference: { type: 'string', default: '' },
  },
});

const matrix = new Matrix();
let told = 0;
const extent = { everything: true, adversaries: ({ name }: { readonly name: string }) => name.includes(options.adversary) };
for (const regime of (['open', 'governed'] as const).filter((name) => name.includes(options.regime))) {
  const asked = differences.filter(
    ({ name, governed }) => name.includes(options.difference) && (governed !== true || regime === 'governed'),
  );
  const groups = options.each ? asked.map((each) => [each]) : together(asked);
  for (const group of groups) {
    await matrix.compare(regime, group, extent);
    say(`${regime}: ${group.map(({ name }) => name).join('; ')}: ${matrix.figures.red} red of ${matrix.figures.cells}`);
    for (const { cell, why } of matrix.reds.slice(told)) say(`RED ${cell}\n    ${why}`);
    told = matrix.reds.length;
  }
}
console.log(JSON.stringify(matrix.figures));
process.exit(matrix.figures.red === 0 ? 0 : 1);

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
