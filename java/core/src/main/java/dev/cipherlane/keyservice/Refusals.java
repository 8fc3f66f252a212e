package dev.cipherlane.keyservice;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;

/** Reads the answers of any status but 200, as {@code spec/errors.md} has them [CL-ERR-006]. */
final class Refusals {
  private static final Map<Integer, Set<ErrorCode>> CODES =
      Map.of(
          400, EnumSet.of(ErrorCode.REQUEST_INVALID, ErrorCode.TOPIC_INVALID),
          401, EnumSet.of(ErrorCode.UNAUTHENTICATED),
          403,
              EnumSet.of(
                  ErrorCode.NOT_AUTHORIZED, ErrorCode.TOPIC_FORBIDDEN, ErrorCode.TOPIC_UNKNOWN),
          413, EnumSet.of(ErrorCode.REQUEST_TOO_LARGE),
          415, EnumSet.of(ErrorCode.REQUEST_INVALID),
          429, EnumSet.of(ErrorCode.KEY_SERVICE_UNAVAILABLE),
          500, EnumSet.of(ErrorCode.KEY_SERVICE_INTERNAL),
          503, EnumSet.of(ErrorCode.AUDIT_UNAVAILABLE, ErrorCode.KEY_SERVICE_UNAVAILABLE));

  private static final int MAX_DETAIL = 300;

  private Refusals() {}

  /** Tells whether another address may do better [CL-KEY-014]. */
  static boolean passing(int status) {
    return status == 429 || status >= 500;
  }

  static CipherlaneException of(HttpAnswer http) {
    try {
      return ofProblem(http);
    } catch (CipherlaneException e) {
      return fallback(http.status(), "status " + http.status() + " without a reason");
    }
  }

  private static CipherlaneException ofProblem(HttpAnswer http) {
    if (!http.mediaType().equals("application/problem+json")) {
      throw Fields.bad("no problem document");
    }
    Fields problem = Fields.parse(http.body());
    ErrorCode code = ErrorCode.ofKeyService(problem.text("code")).orElse(null);
    String detail = detail(problem, http.status());
    if (code != null && CODES.getOrDefault(http.status(), Set.of()).contains(code)) {
      return new CipherlaneException(code, detail);
    }
    return http.status() == 401 || http.status() == 403
        ? new CipherlaneException(ErrorCode.NOT_AUTHORIZED, detail)
        : fallback(http.status(), detail);
  }

  private static CipherlaneException fallback(int status, String detail) {
    return passing(status)
        ? new CipherlaneException(ErrorCode.KEY_SERVICE_UNAVAILABLE, detail)
        : Fields.bad("status " + status + ", which is no answer about a key");
  }

  private static String detail(Fields problem, int status) {
    String said = problem.has("detail") ? printable(problem.text("detail")) : "refused";
    String request = problem.has("request_id") ? printable(problem.text("request_id")) : "none";
    return said + " [status " + status + ", request " + request + "]";
  }

  /** What may stand in a log: it came from outside. */
  static String printable(String text) {
    String cut = text.length() > MAX_DETAIL ? text.substring(0, MAX_DETAIL) + "..." : text;
    return cut.replaceAll("[^\\x20-\\x7E]", "?");
  }
}
