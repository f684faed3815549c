/**
 * A request that makes no sense as it stands: the caller's mistake, told without a stack (STYLE 6).
 *
 * Not a rejection: nothing is counted and no admission result is written.
 */
export class RequestError extends Error {
  override readonly name = "RequestError";
}
