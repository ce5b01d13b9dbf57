/** The verbs that each path answers: a wrong verb (405) differs from an unknown route (404). */
import { didYouMean } from '../../errors.ts';
import type { App } from './context.ts';

export class RouteTable {
  readonly #verbsByUrl = new Map<string, Set<string>>();

  /** Collects the routes registered from now on. */
  constructor(app: App) {
    app.addHook('onRoute', (registeredRoute) => {
      const httpVerbs = this.#verbsByUrl.get(registeredRoute.url) ?? new Set();
      for (const httpVerb of [registeredRoute.method].flat()) httpVerbs.add(httpVerb);
      this.#verbsByUrl.set(registeredRoute.url, httpVerbs);
    });
  }

  /** Verbs of every route that the path fits, sorted; empty when it fits none. */
  verbsOf(requestPath: string): string[] {
    const pathSegments = requestPath.split('/');
    const allowedVerbs = new Set<string>();
    for (const [routeUrl, routeVerbs] of this.#verbsByUrl) {
      if (matchesUrlPattern(routeUrl.split('/'), pathSegments)) for (const routeVerb of routeVerbs) allowedVerbs.add(routeVerb);
    }
    return [...allowedVerbs].sort();
  }

  /** ` (did you mean /query?)` for a path that is one slip away from a route; empty otherwise. */
  guess(requestPath: string): string {
    const pathSegments = requestPath.split('/');
    const similarRoutes = [...this.#verbsByUrl.keys()].filter((routeUrl) => routeUrl.split('/').length === pathSegments.length);
    return didYouMean(requestPath, new Set(similarRoutes.map((routeUrl) => fillRouteUrl(routeUrl, pathSegments))));
  }
}

/** The route with the values of a path where the route takes any. */
function fillRouteUrl(routeUrl: string, pathSegments: readonly string[]): string {
  return routeUrl
    .split('/')
    .map((urlSegment, i) => (urlSegment.startsWith(':') && pathSegments[i] ? pathSegments[i] : urlSegment))
    .join('/');
}

function matchesUrlPattern(urlPattern: readonly string[], pathSegments: readonly string[]): boolean {
  const isOpenPattern = urlPattern[urlPattern.length - 1] === '*';
  const fixedSegments = isOpenPattern ? urlPattern.slice(0, -1) : urlPattern;
  return (
    (isOpenPattern ? pathSegments.length >= urlPattern.length : pathSegments.length === urlPattern.length) &&
    fixedSegments.every((patternSegment, i) =>
      patternSegment.startsWith(':') ? pathSegments[i] !== '' : patternSegment === pathSegments[i],
    )
  );
}
