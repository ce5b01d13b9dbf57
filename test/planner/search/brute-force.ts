/** MATCH and its scores worked out from the rows themselves, without any index and by the definition. */
import { tokenSpans, tokensOf } from '../../../src/projections/rows/indexes/text/tokens.ts';
import { stemmer } from '../../../src/projections/rows/indexes/text/stems.ts';

export type Mode = 'ANY' | 'ALL' | 'LAST' | 'FREQUENCY' | 'PHRASE' | 'FUZZY' | 'STEMMED' | 'BOOLEAN' | 'SUFFIX' | 'INFIX';

export interface Leniency {
  /** Characters from which on a word may differ by an edit; null: none may. */
  readonly typosFrom: number | null;
  /** By column: what a score is multiplied by where it holds a word. */
  readonly boosts: readonly (number | null)[];
}

export function distanceOf(a: string, b: string): number {
  const [x, y] = [Array.from(a), Array.from(b)];
  let row = y.map((_, j) => j + 1);
  x.forEach((char, i) => {
    let diagonal = i;
    let left = i + 1;
    row = row.map((above, j) => {
      const found = Math.min(left + 1, above + 1, diagonal + (char === y[j] ? 0 : 1));
      diagonal = above;
      left = found;
      return found;
    });
  });
  return row.at(-1) ?? x.length;
}

/** What each word of a query asks of a term. */
type Test = (term: string) => boolean;

interface Sought {
  readonly tests: readonly Test[];
  readonly scoring: readonly boolean[];
  /** What a term that passes counts: less where it differs. */
  share(leaf: number, term: string): number;
  matches(terms: readonly string[]): boolean;
}

function soughtOf(text: string, mode: Mode, typosFrom: number | null): Sought {
  const stem = stemmer('english');
  const plainWords = tokensOf(text);
  const isLenient = mode === 'FUZZY' || (typosFrom !== null && ['ANY', 'ALL', 'LAST', 'FREQUENCY'].includes(mode));
  const some = (tests: readonly Test[]): Sought => ({
    tests,
    scoring: tests.map(() => true),
    share: (leaf, term) => (isLenient && term !== plainWords[leaf] ? 0.5 : 1),
    matches: (terms) => tests.some((test) => terms.some(test)),
  });
  const near =
    (each: string): Test =>
    (term) =>
      distanceOf(each, term) <= (Array.from(each).length >= 9 ? 2 : 1);
  const word = (each: string): Test => {
    const [leading, trailing] = [each.startsWith('*'), each.endsWith('*')];
    const [plain = ''] = tokensOf(each);
    if (leading && trailing) return (term) => term.includes(plain);
    if (leading) return (term) => term.endsWith(plain);
    if (trailing) return (term) => term.startsWith(plain);
    if (isLenient && Array.from(plain).length >= (typosFrom ?? 0)) return near(plain);
    return (term) => term === plain;
  };
  const words = text.split(' ').filter((each) => each !== '');
  switch (mode) {
    case 'ANY':
    case 'FREQUENCY':
      return some(words.map(word));
    case 'ALL':
    case 'LAST': {
      const tests = words.map(word);
      const required = mode === 'ALL' ? tests : tests.slice(-1);
      return { ...some(tests), matches: (terms) => tests.length > 0 && required.every((test) => terms.some(test)) };
    }
    case 'FUZZY':
      return some(plainWords.map(near));
    case 'STEMMED':
      return some(tokensOf(text).map((each) => (term) => stem(each) === stem(term)));
    case 'SUFFIX':
      return some(tokensOf(text).map((each) => (term) => term.endsWith(each)));
    case 'INFIX':
      return some(tokensOf(text).map((each) => (term) => term.includes(each)));
    case 'PHRASE': {
      const all = tokensOf(text);
      const tests = all.map(
        (each): Test =>
          (term) =>
            term === each,
      );
      return {
        ...some(tests),
        matches: (terms) => all.length > 0 && terms.some((_, i) => all.every((each, k) => terms[i + k] === each)),
      };
    }
    case 'BOOLEAN': {
      const tests: Test[] = [];
      const scoring: boolean[] = [];
      const steps: { readonly and: boolean; readonly not: boolean; readonly test: Test }[] = [];
      words.forEach((each, i) => {
        if (['AND', 'OR', 'NOT'].includes(each)) return;
        const before = words[i - 1];
        const not = before === 'NOT';
        const joined = not ? words[i - 2] : before;
        const test = word(each);
        tests.push(test);
        scoring.push(!not);
        steps.push({ and: joined === 'AND' || (not && joined !== 'OR' && steps.length > 0), not, test });
      });
      const matches = (terms: readonly string[]): boolean =>
        steps.reduce((found, { and, not, test }) => {
          const own = terms.some(test) !== not;
          return and ? found && own : found || own;
        }, false);
      return { tests, scoring, share: () => 1, matches };
    }
  }
}

export interface Scored {
  readonly match: boolean | null;
  readonly score: number;
}

/** By row. Statistics are of these rows, whatever else a statement asks of them. */
export function matched(
  texts: readonly (readonly (string | null)[])[],
  query: string,
  mode: Mode,
  { typosFrom, boosts }: Leniency = { typosFrom: null, boosts: [] },
): Scored[] {
  const sought = soughtOf(query, mode, typosFrom);
  const rows = texts.map((columns) =>
    columns.map((text) => (text === null ? [] : tokenSpans(text).spans.map(({ term }) => term))),
  );
  // Words that capitals part are no longer than their parts.
  const lengths = texts.map((columns) => columns.map((text) => (text === null ? 0 : tokensOf(text).length)));
  const columns = rows[0]?.map((_, i) => i) ?? [];
  const averages = columns.map((column) => {
    const held = lengths.filter((row) => row[column]! > 0);
    return held.reduce((sum, row) => sum + row[column]!, 0) / Math.max(1, held.length);
  });
  const held = rows.filter((row) => row.some((terms) => terms.length > 0)).length;
  const frequencies = sought.tests.map((test) => rows.filter((row) => row.some((terms) => terms.some(test))).length);
  const rising = [...frequencies.keys()].sort((a, b) => frequencies[a]! - frequencies[b]! || a - b);
  const rarest = rising.slice(0, Math.ceil(rising.length / 2)).map((leaf) => sought.tests[leaf]!);
  return rows.map((row, i): Scored => {
    if (texts[i]!.every((text) => text === null)) return { match: null, score: 0 };
    let score = 0;
    sought.tests.forEach((test, leaf) => {
      if (!sought.scoring[leaf]) return;
      let weight = 0;
      for (const column of columns) {
        const often = row[column]!.filter(test).reduce((sum, term) => sum + sought.share(leaf, term), 0);
        if (often > 0) weight += often / (0.25 + (0.75 * lengths[i]![column]!) / averages[column]!);
      }
      if (weight > 0)
        score += Math.log(1 + (held - frequencies[leaf]! + 0.5) / (frequencies[leaf]! + 0.5)) * ((weight * 2.2) / (weight + 1.2));
    });
    const holding = boosts.filter((_, column) => row[column]!.some((term) => sought.tests.some((test) => test(term))));
    score *= Math.max(...holding.filter((boost) => boost !== null).concat(holding.some((boost) => boost !== null) ? [] : [1]));
    if (mode === 'FREQUENCY') return { match: rarest.every((test) => row.flat().some(test)) && rarest.length > 0, score };
    // Words of a phrase stand in one column, all others anywhere in the row.
    const match =
      mode === 'PHRASE' ? texts[i]!.some((text) => text !== null && sought.matches(tokensOf(text))) : sought.matches(row.flat());
    return { match, score };
  });
}
