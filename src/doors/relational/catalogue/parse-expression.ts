/** The grammar of expressions, by how tightly operators bind. */
import { Cursor, reserved } from './cursor.ts';
import type { Token } from './tokens.ts';
import type { Call, Order, Path, Select, Tree, TypeName } from './trees.ts';

const comparisons: ReadonlySet<string> = new Set(['=', '<>', '!=', '<', '>', '<=', '>=']);
const sums: ReadonlySet<string> = new Set(['+', '-']);
const products: ReadonlySet<string> = new Set(['*', '/', '%']);
const others: ReadonlySet<string> = new Set([
  '||',
  '~',
  '~*',
  '!~',
  '!~*',
  '~~',
  '~~*',
  '!~~',
  '!~~*',
  '@>',
  '<@',
  '&&',
  '&',
  '|',
  '#',
  '->',
  '->>',
]);
/** Without parentheses. */
const valueWords: ReadonlySet<string> = new Set(
  'current_user session_user user current_role current_catalog current_schema current_timestamp current_date'.split(' '),
);
const typesOfWords: ReadonlySet<string> = new Set('double character timestamp time bit national'.split(' '));

export abstract class Expressions extends Cursor {
  abstract select(): Select;

  orders(): Order[] {
    this.expect('by');
    return this.list(() => {
      const by = this.expression();
      const descending = this.takes('desc');
      if (!descending) this.takes('asc');
      let nullsFirst = descending;
      if (this.takes('nulls')) {
        nullsFirst = this.takes('first');
        if (!nullsFirst) this.expect('last');
      }
      return { by, descending, nullsFirst };
    });
  }

  /** Behind any number of parentheses stands a question, not a join. */
  asksInside(): boolean {
    let ahead = 0;
    while (this.peek(ahead).kind === 'symbol' && this.peek(ahead).text === '(') ahead++;
    const { kind, text } = this.peek(ahead);
    return kind === 'word' && ['select', 'with', 'values', 'table'].includes(text);
  }

  expression(): Tree {
    return this.nested(() => {
      const items = [this.conjunction()];
      while (this.takes('or')) items.push(this.conjunction());
      return items.length === 1 ? items[0]! : { kind: 'logic', and: false, items };
    });
  }

  conjunction(): Tree {
    const items = [this.negation()];
    while (this.takes('and')) items.push(this.negation());
    return items.length === 1 ? items[0]! : { kind: 'logic', and: true, items };
  }

  negation(): Tree {
    let times = 0;
    while (this.takes('not')) times++;
    const of = this.is();
    return times === 0 ? of : times % 2 === 1 ? { kind: 'not', of } : { kind: 'not', of: { kind: 'not', of } };
  }

  is(): Tree {
    let of = this.comparison();
    for (;;) {
      if (this.takes('isnull')) of = { kind: 'is', of, what: null, negated: false };
      else if (this.takes('notnull')) of = { kind: 'is', of, what: null, negated: true };
      else if (this.takes('is')) {
        const negated = this.takes('not');
        if (this.takes('distinct')) {
          this.expect('from');
          of = { kind: 'distinct', left: of, right: this.comparison(), negated };
        } else if (this.takes('true')) of = { kind: 'is', of, what: true, negated };
        else if (this.takes('false')) of = { kind: 'is', of, what: false, negated };
        else {
          if (!this.takes('unknown')) this.expect('null');
          of = { kind: 'is', of, what: null, negated };
        }
      } else return of;
    }
  }

  comparison(): Tree {
    let left = this.matching();
    for (;;) {
      const { at } = this.token;
      const op = this.operator(comparisons);
      if (op === null) return left;
      left = this.beside(op === '!=' ? '<>' : op, left, at, () => this.matching());
    }
  }

  /** BETWEEN, IN, LIKE. */
  matching(): Tree {
    let left = this.other();
    for (;;) {
      const { at } = this.token;
      const negated = this.isWord('not') && ['in', 'like', 'ilike', 'between'].includes(this.peek(1).text);
      if (negated) this.next++;
      if (this.takes('in')) {
        const items = this.inParentheses(() => (this.asksInside() ? this.select() : this.list(() => this.expression())));
        left = { kind: 'in', of: left, items, negated, at };
      } else if (this.isWord('like') || this.isWord('ilike')) {
        const op = `${negated ? '!' : ''}~~${this.isWord('ilike') ? '*' : ''}`;
        this.next++;
        left = this.beside(op, left, at, () => this.other());
        if (this.takes('escape') && !(this.token.kind === 'text' && this.token.text === '\\'))
          throw this.unknown('ESCAPE of another character');
        else if (this.previous('escape')) this.next++;
      } else if (this.takes('between')) {
        const low = this.other();
        this.expect('and');
        left = { kind: 'between', of: left, low, high: this.other(), negated, at };
      } else return left;
    }
  }

  other(): Tree {
    let left = this.sum();
    for (;;) {
      const { at } = this.token;
      const op = this.operator(others);
      if (op === null) return left;
      left = this.beside(op, left, at, () => this.sum());
    }
  }

  sum(): Tree {
    let left = this.product();
    for (;;) {
      const { at } = this.token;
      const op = this.operator(sums);
      if (op === null) return left;
      left = { kind: 'operator', op, left, right: this.product(), at };
    }
  }

  product(): Tree {
    let left = this.signed();
    for (;;) {
      const { at } = this.token;
      const op = this.operator(products);
      if (op === null) return left;
      left = { kind: 'operator', op, left, right: this.signed(), at };
    }
  }

  signed(): Tree {
    let negative = false;
    while (this.isSymbol('-') || this.isSymbol('+')) {
      if (this.isSymbol('-')) negative = !negative;
      this.next++;
    }
    const of = this.postfixed();
    return negative ? { kind: 'negative', of } : of;
  }

  /** An operator, and what stands to its right: a value, or ANY and ALL of several. */
  beside(op: string, left: Tree, at: number, right: () => Tree): Tree {
    const all = this.isWord('all');
    if ((all || this.isWord('any') || this.isWord('some')) && this.peek(1).text === '(') {
      this.next++;
      const of = this.inParentheses(() => (this.asksInside() ? this.select() : this.expression()));
      return { kind: 'quantified', op, all, left, right: of, at };
    }
    return { kind: 'operator', op, left, right: right(), at };
  }

  /** A symbol, or one with a schema: OPERATOR(pg_catalog.~). */
  operator(known: ReadonlySet<string>): string | null {
    const { kind, text } = this.token;
    if (kind === 'symbol') {
      if (!known.has(text)) return null;
      this.next++;
      return text;
    }
    if (!this.isWord('operator')) return null;
    let ahead = 2;
    while (this.peek(ahead).kind !== 'symbol' || this.peek(ahead).text === '.') {
      if (this.peek(ahead).kind === 'end') throw this.unexpected();
      ahead++;
    }
    // Written so it binds as loosely as an operator that has no level of its own.
    if (known !== others) return null;
    const op = this.peek(ahead).text;
    if (this.peek(1).text !== '(' || this.peek(ahead + 1).text !== ')') throw this.unexpected();
    if (!others.has(op) && !comparisons.has(op)) throw this.unknown(`the operator ${op}`);
    this.next += ahead + 2;
    return op;
  }

  postfixed(): Tree {
    let of = this.primary();
    for (;;) {
      const { at } = this.token;
      if (this.takesSymbol('::')) of = { kind: 'cast', of, type: this.type(), at };
      else if (this.takesSymbol('[')) {
        const index = this.expression();
        if (this.isSymbol(':')) throw this.unknown('slices of arrays');
        this.expectSymbol(']');
        of = { kind: 'subscript', of, index };
      } else if (this.takes('collate')) this.path();
      else if (this.isSymbol('.') && of.kind !== 'column') {
        this.next++;
        of = { kind: 'field', of, name: this.label() };
      } else if (this.isWord('at') && this.peek(1).text === 'time') throw this.unknown('AT TIME ZONE');
      else return of;
    }
  }

  primary(): Tree {
    const token = this.token;
    switch (token.kind) {
      case 'text':
        this.next++;
        return { kind: 'literal', value: token.text };
      case 'number':
        this.next++;
        return { kind: 'literal', value: Number(token.text) };
      case 'parameter':
        this.next++;
        return { kind: 'parameter', number: Number(token.text) };
      case 'symbol':
        return this.symbol(token);
      case 'name':
        return this.named();
      case 'word':
        return this.word(token);
      case 'end':
        throw this.unexpected();
    }
  }

  symbol({ text, at }: Token): Tree {
    if (text === '*') {
      this.next++;
      return { kind: 'star', of: null, at };
    }
    if (text !== '(') throw this.unexpected();
    if (this.asksInside()) return { kind: 'scalar', select: this.inParentheses(() => this.select()) };
    const items = this.inParentheses(() => this.list(() => this.expression()));
    if (items.length > 1) return { kind: 'row', items };
    // What is in parentheses is no name that a dot goes on with.
    return this.isSymbol('.') ? this.fieldOf(items[0]!) : items[0]!;
  }

  fieldOf(of: Tree): Tree {
    this.expectSymbol('.');
    return { kind: 'field', of, name: this.label() };
  }

  word(token: Token): Tree {
    const { text, at } = token;
    const opens = this.peek(1).kind === 'symbol' && this.peek(1).text === '(';
    switch (text) {
      case 'null':
      case 'true':
      case 'false':
        this.next++;
        return { kind: 'literal', value: text === 'null' ? null : text === 'true' };
      case 'case':
        return this.case();
      case 'array':
        return this.array();
      case 'exists':
        this.next++;
        return { kind: 'exists', select: this.inParentheses(() => this.select()) };
      case 'row':
        if (!opens) break;
        this.next++;
        return { kind: 'row', items: this.inParentheses(() => this.list(() => this.expression())) };
      case 'cast': {
        this.next++;
        return this.inParentheses(() => {
          const of = this.expression();
          this.expect('as');
          return { kind: 'cast', of, type: this.type(), at };
        });
      }
      case 'extract':
      case 'position':
      case 'overlay':
        if (opens) throw this.unknown(text.toUpperCase());
        break;
      case 'interval':
      case 'date':
      case 'timestamp':
      case 'timestamptz':
        if (this.peek(1).kind === 'text') throw this.unknown(`a literal of ${text}`);
        break;
    }
    if (valueWords.has(text) && !opens) {
      this.next++;
      return call([text], at);
    }
    if (reserved.has(text) && !(opens && (text === 'left' || text === 'right'))) throw this.unexpected();
    return this.named();
  }

  /** A column, a call, or all columns of a source. */
  named(): Tree {
    const { at } = this.token;
    const path = [this.label()];
    while (this.isSymbol('.')) {
      this.next++;
      if (this.takesSymbol('*')) return { kind: 'star', of: path.at(-1)!, at };
      path.push(this.label());
    }
    return this.isSymbol('(') ? this.call(path, at) : { kind: 'column', path, at };
  }

  call(path: Path, at: number): Call {
    const given = this.inParentheses(() => {
      if (this.isSymbol(')')) return { arguments: [], star: false, distinct: false, orderBy: [] };
      if (this.isSymbol('*') && this.peek(1).text === ')') {
        this.next++;
        return { arguments: [], star: true, distinct: false, orderBy: [] };
      }
      const distinct = this.takes('distinct');
      if (path.at(-1) === 'trim') return { ...this.#trimmed(), star: false, distinct: false, orderBy: [] };
      const passed = this.list(() => this.expression());
      if (path.at(-1) === 'substring' && this.takes('from')) {
        passed.push(this.expression());
        if (this.takes('for')) passed.push(this.expression());
      }
      if (this.isWord('from') || this.isWord('for')) throw this.unknown(`${path.at(-1)!}(… ${this.token.text.toUpperCase()} …)`);
      return { arguments: passed, star: false, distinct, orderBy: this.takes('order') ? this.orders() : [] };
    });
    let filter: Tree | null = null;
    if (this.isWord('filter') && this.peek(1).text === '(') {
      this.next++;
      filter = this.inParentheses(() => {
        this.expect('where');
        return this.expression();
      });
    }
    if (!this.takes('over')) return { ...call(path, at), ...given, filter };
    if (!this.isSymbol('(')) throw this.unknown('OVER a named window');
    const over = this.inParentheses(() => {
      let partition: Tree[] = [];
      if (this.takes('partition')) {
        this.expect('by');
        partition = this.list(() => this.expression());
      }
      return { partition, orderBy: this.takes('order') ? this.orders() : [] };
    });
    return { ...call(path, at), ...given, filter, over };
  }

  /** `trim(both 'x' from y)`: as a call of the function that does so. */
  #trimmed(): Pick<Call, 'path' | 'arguments'> {
    const name = this.takes('leading') ? 'ltrim' : this.takes('trailing') ? 'rtrim' : 'btrim';
    this.takes('both');
    const first = this.isWord('from') ? null : this.expression();
    if (!this.takes('from')) {
      const letters = this.takesSymbol(',') ? [this.expression()] : [];
      return { path: [name], arguments: [first!, ...letters] };
    }
    const of = this.expression();
    return { path: [name], arguments: first ? [of, first] : [of] };
  }

  case(): Tree {
    return this.nested(() => {
      this.expect('case');
      const of = this.isWord('when') ? null : this.expression();
      const whens: [Tree, Tree][] = [];
      while (this.takes('when')) {
        const when = this.expression();
        this.expect('then');
        whens.push([when, this.expression()]);
      }
      if (whens.length === 0) throw this.unexpected();
      const otherwise = this.takes('else') ? this.expression() : null;
      this.expect('end');
      return { kind: 'case', of, whens, otherwise };
    });
  }

  array(): Tree {
    this.expect('array');
    if (this.isSymbol('(')) return { kind: 'array-of', select: this.inParentheses(() => this.select()) };
    this.expectSymbol('[');
    const items = this.isSymbol(']') ? [] : this.list(() => this.expression());
    this.expectSymbol(']');
    return { kind: 'array', items };
  }

  type(): TypeName {
    const path = [...this.path()];
    const last = path.at(-1)!;
    const isQuoted = this.peek(-1).kind === 'name';
    if (path.length === 1 && !isQuoted && typesOfWords.has(last)) {
      const words = [last];
      while (this.token.kind === 'word' && /^(precision|varying|without|with|time|zone|character)$/.test(this.token.text)) {
        words.push(this.token.text);
        this.next++;
      }
      path[0] = words.join(' ');
    }
    if (this.isSymbol('(')) this.inParentheses(() => this.list(() => this.primary()));
    let isArray = false;
    while (this.isSymbol('[') && (this.peek(1).text === ']' || this.peek(2).text === ']')) {
      this.next += this.peek(1).text === ']' ? 2 : 3;
      isArray = true;
    }
    return { path, isQuoted, isArray };
  }
}

function call(path: Path, at: number): Call {
  return { kind: 'call', path, arguments: [], star: false, distinct: false, orderBy: [], filter: null, over: null, at };
}
