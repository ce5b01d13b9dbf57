/**
 * The whole leak matrix. Prints the red cells of each group as it ends, and its figures as one line of JSON; exits 1 when a cell is red.
 *
 *   npm run leaks -- [--each] [--part i/n] [--regime open|governed] [--adversary <part of a name>] [--difference <part of a name>]
 *
 * The whole takes most of an hour of one core: `--part 2/5` asks for every fifth adversary, from the second on, so that five runs ask for all of them.
 * Differences are asked about together, then those that move commitments to the whole store by themselves; `--each` asks
 * about every one by itself, which tells whose a red cell is.
 */
import { parseArgs } from 'node:util';
import { type Adversary, adversaries } from './adversaries.ts';
import { differences, together } from './differences.ts';
import { Matrix } from './matrix.ts';

const { values: options } = parseArgs({
  options: {
    each: { type: 'boolean', default: false },
    part: { type: 'string', default: '1/1' },
    regime: { type: 'string', default: '' },
    adversary: { type: 'string', default: '' },
    difference: { type: 'string', default: '' },
  },
});

const [part, parts] = partOf(options.part);
const chosen = new Set(adversaries.filter(({ name }, i) => i % parts === part - 1 && name.includes(options.adversary)));
if (chosen.size === 0) throw new Error('no adversary is of that name and part');

const matrix = new Matrix();
let told = 0;
const extent = { everything: true, adversaries: (adversary: Adversary) => chosen.has(adversary) };
for (const regime of (['open', 'governed'] as const).filter((name) => name.includes(options.regime))) {
  const asked = differences.filter(
    ({ name, governed }) => name.includes(options.difference) && (governed !== true || regime === 'governed'),
  );
  const groups = options.each ? asked.map((each) => [each]) : together(asked);
  for (const group of groups) {
    const before = { ...matrix.figures };
    await matrix.compare(regime, group, extent);
    const { cells, red } = matrix.figures;
    say(`${regime}: ${group.map(({ name }) => name).join('; ')}: ${red - before.red} red of ${cells - before.cells}`);
    for (const { cell, why } of matrix.reds.slice(told)) say(`RED ${cell}\n    ${why}`);
    told = matrix.reds.length;
  }
}
console.log(JSON.stringify({ ...matrix.figures, adversaries: chosen.size }));
process.exit(matrix.figures.red === 0 ? 0 : 1);

function partOf(text: string): [part: number, parts: number] {
  const [, part, parts] = /^([1-9]\d*)\/([1-9]\d*)$/.exec(text)?.map(Number) ?? [];
  if (part === undefined || parts === undefined || part > parts) throw new Error(`--part ${text}: say 1/5 to 5/5`);
  return [part, parts];
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
