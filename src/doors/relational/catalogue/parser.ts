/**
 * Reads questions of the catalogue: SELECT as psql, drivers and tools write it, which is Postgres' own SQL and not that of the
 * planner. Each token is looked at a bounded number of times, and nesting is bounded: what a client sends can't hold the loop.
 */
import { ServiceError } from '../../../errors.ts';
import { reserved } from './cursor.ts';
import { Expressions } from './parse-expression.ts';
import { type Alias, type Body, type Core, type From, type Item, type Named, nodesOf, type Select, type Tree } from './trees.ts';

const textMax = 64 * 1024;

/** Throws REL_PARSE for what is no SELECT. */
export function parseSelect(text: string): Select {
  if (text.length > textMax)
    throw new ServiceError('REL_TOO_LARGE', `a question of the catalogue has at most ${textMax} characters`);
  const parser = new Parser(text);
  const select = parser.select();
  parser.expectEnd();
  nodesOf(select);
  return select;
}

class Parser extends Expressions {
  select(): Select {
    return this.nested(() => {
      const named = this.with();
      const body = this.union();
      const orderBy = this.takes('order') ? this.orders() : [];
      let limit: Tree | null = null;
      let offset: Tree | null = null;
      for (;;) {
        if (this.takes('limit')) limit = this.takes('all') ? null : this.expression();
        else if (this.takes('offset')) {
          offset = this.expression();
          if (!this.takes('rows')) this.takes('row');
        } else if (this.takes('fetch')) {
          if (!this.takes('first')) this.expect('next');
          limit = this.isWord('row') || this.isWord('rows') ? { kind: 'literal', value: 1 } : this.primary();
          if (!this.takes('rows')) this.expect('row');
          this.expect('only');
        } else break;
      }
      return { kind: 'select', with: named, body, orderBy, limit, offset };
    });
  }

  with(): Named[] {
    if (!this.takes('with')) return [];
    const isRecursive = this.takes('recursive');
    const named: Named[] = [];
    do {
      const name = this.name();
      const columns = this.isSymbol('(') ? this.names() : [];
      this.expect('as');
      if (this.takes('not')) this.expect('materialized');
      else this.takes('materialized');
      named.push({ name, columns, isRecursive, select: this.inParentheses(() => this.select()) });
    } while (this.takesSymbol(','));
    return named;
  }

  union(): Body {
    let left = this.intersect();
    for (;;) {
      const op = this.isWord('union') ? 'union' : this.isWord('except') ? 'except' : null;
      if (op === null) return left;
      this.next++;
      left = { kind: 'set', op, all: this.all(), left, right: this.intersect() };
    }
  }

  intersect(): Body {
    let left = this.body();
    while (this.takes('intersect')) left = { kind: 'set', op: 'intersect', all: this.all(), left, right: this.body() };
    return left;
  }

  all(): boolean {
    if (this.takes('all')) return true;
    this.takes('distinct');
    return false;
  }

  body(): Body {
    if (this.isSymbol('(')) return this.inParentheses(() => this.select());
    if (this.takes('values')) {
      const rows = this.list(() => this.inParentheses(() => this.list(() => this.expression())));
      return { kind: 'values', rows };
    }
    if (this.takes('table')) {
      const from = this.relation();
      const items = [{ of: { kind: 'star', of: null, at: this.token.at } as const, alias: null }];
      return { kind: 'core', distinct: false, items, from: [from], where: null, groupBy: [], having: null };
    }
    this.expect('select');
    return this.core();
  }

  core(): Core {
    let distinct: boolean | Tree[] = false;
    if (this.takes('distinct')) {
      distinct = true;
      if (this.takes('on')) distinct = this.inParentheses(() => this.list(() => this.expression()));
    } else this.takes('all');
    const items = this.isWord('from') || this.token.kind === 'end' ? [] : this.list(() => this.item());
    const from = this.takes('from') ? this.list(() => this.from()) : [];
    const where = this.takes('where') ? this.expression() : null;
    let groupBy: Tree[] = [];
    if (this.takes('group')) {
      this.expect('by');
      groupBy = this.list(() => this.expression());
    }
    const having = this.takes('having') ? this.expression() : null;
    if (this.isWord('window') || this.isWord('for') || this.isWord('into')) throw this.unknown(this.token.text.toUpperCase());
    return { kind: 'core', distinct, items, from, where, groupBy, having };
  }

  item(): Item {
    const of = this.expression();
    if (this.takes('as')) return { of, alias: this.label() };
    const { kind, text } = this.token;
    if (kind === 'name' || (kind === 'word' && !reserved.has(text))) return { of, alias: this.label() };
    return { of, alias: null };
  }

  from(): From {
    return this.nested(() => {
      let left = this.source();
      for (;;) {
        const natural = this.isWord('natural');
        if (natural) throw this.unknown('NATURAL JOIN');
        if (this.takes('cross')) {
          this.expect('join');
          left = { kind: 'join', type: 'inner', left, right: this.source(), on: null, using: [], swapped: false };
          continue;
        }
        if (this.isWord('full')) throw this.unknown('FULL JOIN');
        const swapped = this.isWord('right');
        const outer = swapped || this.isWord('left');
        if (!outer && !this.isWord('inner') && !this.isWord('join')) return left;
        if (outer || this.isWord('inner')) this.next++;
        if (outer) this.takes('outer');
        this.expect('join');
        const right = this.source();
        const sides = swapped ? { left: right, right: left } : { left, right };
        const using = this.takes('using') ? this.names() : [];
        let on: Tree | null = null;
        if (using.length === 0) {
          this.expect('on');
          on = this.expression();
        }
        left = { kind: 'join', type: outer ? 'left' : 'inner', ...sides, on, using, swapped };
      }
    });
  }

  source(): From {
    const lateral = this.takes('lateral');
    if (this.isSymbol('(')) {
      const { kind, text } = this.peek(1);
      const asks = (kind === 'word' && ['select', 'with', 'values', 'table'].includes(text)) || text === '(';
      if (asks && this.asksInside()) {
        const select = this.inParentheses(() => this.select());
        return { kind: 'derived', select, alias: this.alias() };
      }
      if (lateral) throw this.unexpected();
      return this.inParentheses(() => this.from());
    }
    return this.relation();
  }

  relation(): From {
    const { at } = this.token;
    this.takes('only');
    const path = this.path();
    if (!this.isSymbol('(')) return { kind: 'relation', path, alias: this.alias(), at };
    const call = this.call(path, at);
    let ordinality = false;
    if (this.takes('with')) {
      this.expect('ordinality');
      ordinality = true;
    }
    return { kind: 'function', call, ordinality, alias: this.alias() };
  }

  alias(): Alias {
    const { kind, text } = this.token;
    const named = this.takes('as') || kind === 'name' || (kind === 'word' && !reserved.has(text));
    if (!named) return { name: null, columns: [] };
    const name = this.label();
    return { name, columns: this.isSymbol('(') ? this.names() : [] };
  }
}
