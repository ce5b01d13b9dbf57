/** The verbs that each path answers: a wrong verb (405) differs from an unknown route (404). */
import { didYouMean } from '../../errors.ts';
import type { App } from './context.ts';

export class RouteTable {
  readonly #routes = new Map<string, Set<string>>();

  /** Collects the routes registered from now on. */
  constructor(app: App) {
    app.addHook('onRoute', (route) => {
      const verbs = this.#routes.get(route.url) ?? new Set();
      for (const verb of [route.method].flat()) verbs.add(verb);
      this.#routes.set(route.url, verbs);
    });
  }

  /** Verbs of every route that the path fits, sorted; empty when it fits none. */
  verbsOf(path: string): string[] {
    const segments = path.split('/');
    const verbs = new Set<string>();
    for (const [url, routeVerbs] of this.#routes) {
      if (fits(url.split('/'), segments)) for (const verb of routeVerbs) verbs.add(verb);
    }
    return [...verbs].sort();
  }

  /** ` (did you mean /query?)` for a path that is one slip away from a route; empty otherwise. */
  guess(path: string): string {
    const segments = path.split('/');
    const routes = [...this.#routes.keys()].filter((url) => url.split('/').length === segments.length);
    return didYouMean(path, new Set(routes.map((url) => fillPath(url, segments))));
  }
}

/** The route with the values of a path where the route takes any. */
function fillPath(url: string, segments: readonly string[]): string {
  return url
    .split('/')
    .map((part, i) => (part.startsWith(':') && segments[i] ? segments[i] : part))
    .join('/');
}

function fits(pattern: readonly string[], segments: readonly string[]): boolean {
  const open = pattern[pattern.length - 1] === '*';
  const fixed = open ? pattern.slice(0, -1) : pattern;
  return (
    (open ? segments.length >= pattern.length : segments.length === pattern.length) &&
    fixed.every((part, i) => (part.startsWith(':') ? segments[i] !== '' : part === segments[i]))
  );
}
