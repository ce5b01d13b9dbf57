/** The request that the example of a route stands for. */
import type { Route } from '../../../src/doors/http/route.ts';
import { assert } from '../../../src/errors.ts';
import { filled } from '../verbs/examples.ts';

export interface ExampleRequest {
  readonly path: string;
  readonly body?: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** `ids`: what names such as `a job` stand for; a name that is not in it stays as it is. */
export function exampleRequest(route: Route, ids: Readonly<Record<string, string>>): ExampleRequest {
  const { method, example = {} } = route;
  const { params = {}, query, body, headers = {} } = filled(example, ids);
  const path = route.path.replaceAll(/:(\w+)|\*/g, (name) => {
    const value = params[name.replace(':', '')];
    assert(value !== undefined, `the example of ${method} ${route.path} names ${name}`);
    return value.split('/').map(encodeURIComponent).join('/');
  });
  const parameters = query === undefined ? '' : `?${new URLSearchParams(query).toString()}`;
  const sent = body ?? (['POST', 'PUT', 'PATCH'].includes(method) ? {} : undefined);
  return {
    path: path + parameters,
    ...(sent !== undefined && { body: typeof sent === 'string' ? sent : JSON.stringify(sent) }),
    headers,
  };
}
