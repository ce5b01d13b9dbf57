/** Local development without credentials: allowed only while every one of the specification's conditions holds. */
import type { Settings } from '../../config.ts';

export interface OpenDevelopmentConditions {
  readonly settings: Pick<
    Settings,
    'SERVICE_OPEN_DEV_ALLOWED' | 'SERVICE_BEARER_TOKEN' | 'SERVICE_ADMIN_TOKEN' | 'SERVICE_PROFILE'
  >;
  readonly registeredTokens: number;
  readonly boundToLoopback: boolean;
}

/** Checked at each request: the first registered token ends the mode. Source: specification, "Authentication" 5. */
export function openDevelopment(openConditions: OpenDevelopmentConditions): boolean {
  const { settings, registeredTokens, boundToLoopback } = openConditions;
  return (
    settings.SERVICE_OPEN_DEV_ALLOWED &&
    settings.SERVICE_BEARER_TOKEN === null &&
    settings.SERVICE_ADMIN_TOKEN === null &&
    registeredTokens === 0 &&
    // Only here may the authentication mode be none at all: the other profiles demand a bearer token to start.
    settings.SERVICE_PROFILE === 'free' &&
    boundToLoopback
  );
}
