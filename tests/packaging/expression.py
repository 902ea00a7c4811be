"""Expressions of workflows and actions, `${{ … }}`, as the runner evaluates them. What it does not know is an error."""

import json
import re


class Unknown(Exception):
    """An expression, or what has one, says something that is not known here, or that GitHub would refuse."""


class Strict(dict):
    """A context in which every name is known."""

    def __missing__(self, key):
        raise Unknown(f"`{key}` is none of {sorted(self)}")


TOKEN = re.compile(r"\s*(?:('(?:[^']|'')*')|(&&|\|\||==|!=|[!().,])|([A-Za-z_][\w-]*))")


class Expression:
    """`${{ … }}`, without its marks."""

    def __init__(self, text, contexts, status):
        self.text, self.contexts, self.status, self.tokens = text, contexts, status, []
        self.asked_for_status = False
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

    def either(self):
        left = self.both()
        while self.take("||"):
            right = self.both()
            left = left if truth(left) else right
        return left

    def both(self):
        left = self.compared()
        while self.take("&&"):
            right = self.compared()
            left = right if truth(left) else left
        return left

    def compared(self):
        left = self.single()
        operator = self.take("==", "!=")
        if not operator:
            return left
        left, right = left if left is not None else "", self.single()
        right = right if right is not None else ""
        if not isinstance(left, str) or not isinstance(right, str):
            raise Unknown(f"`{self.text}` compares what are not texts")
        return (left.lower() == right.lower()) == (operator == "==")

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
            return self.call(token)
        if token not in self.contexts:
            raise Unknown(f"`{token}` in `{self.text}`")
        found = self.contexts[token]
        while self.take("."):
            name = self.tokens.pop(0)
            found = None if found is None else found[name] if isinstance(found, Strict) else found.get(name)
        return found

    def call(self, name):
        arguments = []
        while not self.take(")"):
            arguments.append(self.either())
            self.take(",")
        if name == "format":
            return re.sub(r"\{(\d+)\}", lambda match: text_of(arguments[int(match[1]) + 1]), arguments[0])
        if name == "toJSON" and len(arguments) == 1:
            return json.dumps(arguments[0], indent=2)
        if name not in self.status or arguments:
            raise Unknown(f"`{name}()` in `{self.text}`")
        self.asked_for_status = True
        return self.status[name]


def truth(value):
    return value not in (None, "", False)


def text_of(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int):
        raise Unknown(f"{value} is no text")
    return str(value)


def expand(text, contexts):
    """A text with the values of its expressions."""
    text = text_of(text) if isinstance(text, bool) else str(text)
    return re.sub(r"\$\{\{(.*?)\}\}", lambda match: text_of(Expression(match[1], contexts, {}).value()), text)


def holds(text, contexts, is_well):
    status = {"always": True, "cancelled": False, "success": is_well, "failure": not is_well}
    expression = Expression(re.sub(r"^\$\{\{(.*)\}\}$", r"\1", str(text).strip(), flags=re.DOTALL), contexts, status)
    found = truth(expression.value())
    return found and (expression.asked_for_status or is_well)
