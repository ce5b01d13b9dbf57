/** The functions as the manual shows them: the second half of `docs/sql.md`. */
import { aggregateFunctions } from '../../../src/planner/aggregate-functions.ts';
import { scalarFunctions } from '../../../src/planner/expressions/functions/all.ts';
import { typeNames } from '../../../src/planner/expressions/functions/casts.ts';
import { extractFields } from '../../../src/planner/expressions/functions/instants.ts';
import type { FunctionGroup } from '../../../src/planner/expressions/functions/scalar-function.ts';

const titles: readonly (readonly [FunctionGroup, string])[] = [
  ['numbers', 'Numbers'],
  ['text', 'Text'],
  ['patterns', 'Patterns'],
  ['time', 'Time'],
  ['json', 'JSON'],
  ['choice', 'Choice'],
  ['vectors', 'Vectors'],
];

export function manual(): string {
  const lines = ['## Functions', '', 'A NULL among the arguments makes the result NULL, where nothing else is said.', ''];
  for (const [group, title] of titles) {
    lines.push(`### ${title}`, '', '| written | yields | for example |', '|---|---|---|');
    for (const each of scalarFunctions) {
      if (each.group !== group) continue;
      const also = each.also?.length ? ` Also ${each.also.join(', ')}.` : '';
      const examples = each.examples.map(([sql, result]) => `\`${sql}\` = \`${result}\``).join('; ');
      lines.push(row([`\`${each.usage}\``, `${each.summary}${also}`, examples]));
    }
    if (group === 'time') {
      lines.push(row(['`EXTRACT(field FROM x)`', `A field of an instant: ${extractFields.join(', ')}.`, '']));
    }
    if (group === 'choice') {
      lines.push(row(['`COALESCE(x, ...)`', 'The first that is not NULL (wide dialect).', '`COALESCE(NULL, 2)` = `2`']));
    }
    lines.push('');
  }
  lines.push('### Types', '', '| type | names in CAST(x AS name) and x::name |', '|---|---|');
  for (const type of new Set(typeNames.values())) {
    const names = [...typeNames].flatMap(([name, of]) => (of === type ? `\`${name}\`` : []));
    lines.push(row([type, names.join(' ')]));
  }
  lines.push('', '### Aggregates', '', 'Of no value all but COUNT are NULL.', '', '| written | yields |', '|---|---|');
  for (const each of Object.values(aggregateFunctions)) {
    const also = 'also' in each ? ` Also ${each.also.join(', ')}.` : '';
    lines.push(row([`\`${each.usage}\``, `${each.summary}${also}`]));
  }
  return `${lines.join('\n')}\n`;
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}
