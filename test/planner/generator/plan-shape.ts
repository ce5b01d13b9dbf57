/**
 * A plan's operators without what differs between worlds: names, literals, estimates, the words of expressions. Two
 * statements of one shape ran through the same operators in the same way.
 */
export function planShape(plan: string): string {
  return plan
    .split('\n')
    .map((line) => {
      const indent = line.length - line.trimStart().length;
      return `${' '.repeat(indent)}${lineShape(line.trim())}`;
    })
    .join('\n');
}

function lineShape(line: string): string {
  const [operator = ''] = line.split(' ');
  const has = (word: string): string => (new RegExp(`\\b${word}\\b`).test(line) ? ` ${word}` : '');
  switch (operator) {
    case 'scan':
      return `scan by ${/by (\w+)/.exec(line)?.[1] ?? 'nothing'}${has('zone')}${has('valid at')}${has('known at')}`;
    case 'aggregate':
      return `aggregate${['count', 'sum', 'avg', 'min', 'max', 'distinct', 'by'].map(has).join('')}`;
    case 'join':
      return `join${['inner', 'left', 'right', 'full', 'on', 'residual', 'and', 'where', 'if'].map(has).join('')}`;
    case 'set-operation':
      return `set-operation${['union', 'all', 'intersect', 'except'].map(has).join('')}`;
    case 'filter':
      return `filter${['like', 'in', 'case', 'between', 'or', 'and'].map(has).join('')}`;
    case 'sort':
      return `sort${has('desc')}${has('first')}`;
    default:
      return operator;
  }
}
