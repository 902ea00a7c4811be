"""What requests of OTLP say, read with the official messages: JSON or protobuf, into lists of dictionaries."""

import base64
import json

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

REQUESTS = {"traces": ExportTraceServiceRequest, "metrics": ExportMetricsServiceRequest}


def with_bytes(value):
    """Makes of the ids, which OTLP writes in hexadecimal digits, what protobuf's JSON has for bytes."""
    if isinstance(value, list):
        return [with_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {
        key: base64.b64encode(bytes.fromhex(item)).decode() if key in ids else with_bytes(item)
        for key, item in value.items()
    }


def read(kind, data):
    """Reads a request for `traces` or `metrics`. Fails when it has a field that OTLP does not know."""
    request = REQUESTS[kind]()
    if data.startswith(b"{"):
        json_format.ParseDict(with_bytes(json.loads(data)), request)
    else:
        request.ParseFromString(data)
        assert not unknown(request), "a field that OTLP does not know"
    return request


def unknown(message):
    """Tells whether a message is longer than what is known of it."""
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    return known.ByteSize() != message.ByteSize()


def attributes(pairs):
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


def spans(request):
    for of_resource in request.resource_spans:
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                yield {
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "name": span.name,
                    "kind": Span.SpanKind.Name(span.kind),
                    "start": span.start_time_unix_nano,
                    "end": span.end_time_unix_nano,
                    "attributes": attributes(span.attributes),
                    "links": [
                        {"trace": link.trace_id.hex(), "id": link.span_id.hex(), "attributes": attributes(link.attributes)}
                        for link in span.links
                    ],
                    "failed": span.status.code == Status.STATUS_CODE_ERROR,
                }


def metrics(request):
    for of_resource in request.resource_metrics:
        for of_scope in of_resource.scope_metrics:
            for metric in of_scope.metrics:
                kind = metric.WhichOneof("data")
                yield {
                    "name": metric.name,
                    "unit": metric.unit,
                    "kind": kind,
                    "points": [
                        {
                            "attributes": attributes(point.attributes),
                            "value": point.sum if kind == "histogram" else point.as_double,
                        }
                        for point in getattr(metric, kind).data_points
                    ],
                }
