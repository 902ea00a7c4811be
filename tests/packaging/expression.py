"""GitHub's expressions, `${{ … }}`, as far as our actions and workflows use them. What is not known is an error."""

import json
import re

TOKEN = re.compile(r"\s*(?:('(?:[^']|'')*')|(&&|\|\||==|!=|[!().,])|([A-Za-z_][\w-]*))")
STATUS = ("always", "cancelled", "success", "failure")


class Unknown(Exception):
    """The workflow says something that this player does not know, or that GitHub would refuse."""


class Strict(dict):
    """A context in which every name is known."""

    def __missing__(self, key):
        raise Unknown(f"`{key}` is none of {sorted(self)}")


class Expression:
    """The text between the marks. Functions of the runner, such as `hashFiles`, are in `contexts`."""

    def __init__(self, text, contexts, status):
        self.text, self.contexts, self.status, self.tokens = text, contexts, status, []
        self.asked_for_status = False
        # Inside of what does not decide: it is read, but nothing is called there.
        self.is_idle = False
        position = 0
        while text[position:].strip():
            match = TOKEN.match(text, position)
            if match is None:
                raise Unknown(f"`{text[position:]}` in `{text}`")
            self.tokens.append(match[0].strip())
            position = match.end()

    def value(self):
        found = self.either()
        if self.tokens:
            raise Unknown(f"`{self.tokens[0]}` in `{self.text}`")
        return found

    def take(self, *wanted):
        return self.tokens.pop(0) if self.tokens and self.tokens[0] in wanted else None

    def need(self, wanted):
        if not self.take(wanted):
            raise Unknown(f"`{wanted}` is missing in `{self.text}`")

    def idle(self, is_idle, read):
        before, self.is_idle = self.is_idle, self.is_idle or is_idle
        found = read()
        self.is_idle = before
        return found

    def either(self):
        left = self.both()
        while self.take("||"):
            is_decided = truth(left)
            right = self.idle(is_decided, self.both)
            left = left if is_decided else right
        return left

    def both(self):
        left = self.compared()
        while self.take("&&"):
            is_decided = not truth(left)
            right = self.idle(is_decided, self.compared)
            left = left if is_decided else right
        return left

    def compared(self):
        left = self.single()
        operator = self.take("==", "!=")
        if not operator:
            return left
        left, right = left if left is not None else "", self.single()
        right = right if right is not None else ""
        if not self.is_idle and not (isinstance(left, str) and isinstance(right, str)):
            raise Unknown(f"`{self.text}` compares what are not texts")
        return (str(left).lower() == str(right).lower()) == (operator == "==")

    def single(self):
        if self.take("!"):
            return not truth(self.single())
        if self.take("("):
            inner = self.either()
            self.need(")")
            return inner
        token = self.tokens.pop(0) if self.tokens else ""
        if token.startswith("'"):
            return token[1:-1].replace("''", "'")
        if self.take("("):
            found = self.call(token)
        elif token in self.contexts and not callable(self.contexts[token]):
            found = self.contexts[token]
        else:
            raise Unknown(f"`{token}` in `{self.text}`")
        while self.take("."):
            name = self.tokens.pop(0)
            found = None if found is None else found[name] if isinstance(found, Strict) else found.get(name)
        return found

    def call(self, name):
        arguments = []
        while not self.take(")"):
            arguments.append(self.either())
            self.take(",")
        if name in STATUS and name in self.status and not arguments:
            self.asked_for_status = True
            return self.status[name]
        known = {**FUNCTIONS, **{own: function for own, function in self.contexts.items() if callable(function)}}
        if name not in known:
            raise Unknown(f"`{name}()` in `{self.text}`")
        return None if self.is_idle else known[name](*arguments)


def formatted(text, *values):
    written = lambda match: match[0][0] if match[1] is None else text_of(values[int(match[1])])
    return re.sub(r"\{\{|\}\}|\{(\d+)\}", written, text)


FUNCTIONS = {
    "contains": lambda text, part: text_of(part).lower() in text_of(text).lower(),
    "format": formatted,
    "fromJSON": json.loads,
    "startsWith": lambda text, start: text_of(text).lower().startswith(text_of(start).lower()),
    "toJSON": lambda value: json.dumps(value, indent=2),
}


def truth(value):
    return value not in (None, "", False, 0)


def text_of(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int):
        raise Unknown(f"{value} is no text")
    return str(value)


def evaluated(text, contexts):
    """What a text stands for: a text that is one expression can be of any type."""
    if not isinstance(text, str):
        return text
    one = re.fullmatch(r"\s*\$\{\{(.*?)\}\}\s*", text, re.DOTALL)
    return Expression(one[1], contexts, {}).value() if one else expand(text, contexts)


def expand(text, contexts):
    """A text with the values of its expressions, put in as they are: the runner quotes nothing."""
    text = text_of(text) if isinstance(text, bool) else str(text)
    pattern = r"\$\{\{(.*?)\}\}"
    return re.sub(pattern, lambda match: text_of(Expression(match[1], contexts, {}).value()), text, flags=re.DOTALL)


def holds(text, contexts, is_well, is_cancelled=False):
    """Whether a condition holds. Without a status function it means `success()` too."""
    status = {
        "always": True,
        "cancelled": is_cancelled,
        "success": is_well and not is_cancelled,
        "failure": not is_well and not is_cancelled,
    }
    expression = Expression(re.sub(r"^\$\{\{(.*)\}\}$", r"\1", text_of(text).strip(), flags=re.DOTALL), contexts, status)
    found = truth(expression.value())
    return found and (expression.asked_for_status or status["success"])
