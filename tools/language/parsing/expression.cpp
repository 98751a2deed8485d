#include "language/parsing/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "language/functions/functions.hpp"
#include "language/parsing/scope.hpp"
#include "language/tokens/token_cursor.hpp"
#include "language/tokens/tokens.hpp"
#include "language/values/arguments.hpp"
#include "language/values/array_property.hpp"
#include "language/values/indexing.hpp"
#include "language/values/operators.hpp"
#include "language/values/value.hpp"
#include "terminal/interrupt.hpp"

namespace shale::tools {

namespace {

constexpr std::size_t string_bytes_max = 100;

// Binary operators by precedence, lowest first. power() handles `**`.
struct precedence_level {
  std::array<std::string_view, 6> symbols;
  bool chains;  // whether a op b op c means (a op b) op c
};
constexpr std::array<precedence_level, 7> levels{{{{"==", "!=", "<", "<=", ">", ">="}, false},
                                                  {{"|"}, true},
                                                  {{"^"}, true},
                                                  {{"&"}, true},
                                                  {{"<<", ">>"}, true},
                                                  {{"+", "-"}, true},
                                                  {{"*", "/", "//", "%", "@"}, true}}};

bool is_one_of(const token& item, std::initializer_list<std::string_view> symbols) {
  return item.kind == token_kind::symbol &&
         std::find(symbols.begin(), symbols.end(), item.text) != symbols.end();
}
bool is_comparison(const token& item) {
  return is_one_of(item, {"==", "!=", "<", "<=", ">", ">="});
}
bool is_bitwise(const token& item) { return is_one_of(item, {"&", "|", "^"}); }

// A recursive-descent parser with one function for each level of the grammar. A function reads the
// tokens of its level and returns their value.
class parser : private token_cursor {
 public:
  parser(std::string_view text, const bindings& arrays) : token_cursor(text), scope_(arrays) {}

  value parse() {
    while (peek().kind == token_kind::name && peek(1).is("=")) assign();
    result_at_ = peek().at;
    if (peek().kind == token_kind::end) fail("expected an expression", result_at_);
    value result = tuple_or_expression();
    take(";");
    if (peek().kind != token_kind::end) fail_at_token();
    return result;
  }

  expr parse_array() {
    const value result = parse();
    return at(result_at_, [&] { return to_expr(result); });
  }

 private:
  void count_operations(std::size_t more, std::size_t at_byte) {
    operations_ += more;
    if (operations_ > expression_operations_max)
      fail(fmt::format("more than {} operations", expression_operations_max), at_byte,
           "compute parts of it into arrays of their own first");
  }

  // Runs `body`, which builds one operation. Its errors point at byte `at_byte`.
  template <class Body>
  std::invoke_result_t<Body&> operation(std::size_t at_byte, Body&& body) {
    count_operations(1, at_byte);
    throw_if_interrupted();
    return at(at_byte, std::forward<Body>(body));
  }

  // A function that joins the arrays of a tuple does one operation for each of them. Other tuples,
  // such as shapes, are short and counted in the same way.
  void count_arrays(const value& argument, std::size_t at_byte) {
    if (argument.is<value::tuple>())
      count_operations(argument.as<value::tuple>().elements().size(), at_byte);
  }

  // Counts one level of nesting during its lifetime.
  class nesting {
   public:
    explicit nesting(parser& owner) : owner_(owner) {
      if (++owner_.depth_ > expression_depth_max)
        owner_.fail(fmt::format("nested more than {} deep", expression_depth_max),
                    owner_.peek().at);
    }
    ~nesting() { --owner_.depth_; }
    nesting(const nesting&) = delete;
    nesting& operator=(const nesting&) = delete;

   private:
    parser& owner_;
  };

  // ---- grammar ---------------------------------------------------------------------------------

  void assign() {
    const token& name = advance();
    if (is_keyword(name.text)) fail(fmt::format("'{}' cannot be a name", name.text), name.at);
    expect("=");
    value assigned = tuple_or_expression();
    if (!take(";")) fail_at_token("expected ';' and then what to compute");
    scope_.assign(name.text, std::move(assigned));
  }

  value tuple_or_expression() {
    value first = expression();
    if (!peek().is(",")) return first;
    const std::size_t comma_at = peek().at;
    std::vector<value> elements{std::move(first)};
    while (take(",")) {
      if (peek().kind == token_kind::end || peek().is(";")) break;
      elements.push_back(expression());
    }
    return tuple_of(std::move(elements), comma_at);
  }

  value tuple_of(std::vector<value> elements, std::size_t at_byte,
                 sequence_kind kind = sequence_kind::tuple) const {
    value::tuple made(std::move(elements), kind);
    if (made.depth() > expression_depth_max)
      fail(fmt::format("tuples nested more than {} deep", expression_depth_max), at_byte);
    return {std::move(made)};
  }

  value expression() {
    const nesting level(*this);
    return binary(0);
  }

  value binary(std::size_t level) {
    if (level == levels.size()) return unary();
    const std::size_t begin = position();
    value left = binary(level + 1);
    bool first = true;
    while (const token* op = take_operator(level)) {
      if (!first && !levels[level].chains) fail_chained(begin, *op);
      first = false;
      const value right = binary(level + 1);
      if (is_bitwise(*op) && compares_beside(begin) &&
          !(accepts_bitwise_operators(left) && accepts_bitwise_operators(right)))
        fail_unbracketed(*op);
      left = operation(op->at, [&] { return apply_binary(op->text, left, right); });
    }
    return left;
  }

  // Bools and integers, and arrays of them, are accepted by & | ^.
  static bool accepts_bitwise_operators(const value& operand) {
    if (!operand.is<expr>()) return !operand.is<double>();
    return !is_inexact(operand.as<expr>().dtype());
  }

  // Whether the tokens from `begin` on are an operand of a comparison, without brackets around
  // them.
  bool compares_beside(std::size_t begin) const {
    return is_comparison(peek()) || (begin > 0 && is_comparison(read_at(begin - 1)));
  }

  [[noreturn]] void fail_unbracketed(const token& op) const {
    fail(fmt::format("'{}' binds tighter than comparisons, as in Python", op.text), op.at,
         fmt::format("put them into brackets: (a > 0) {} (a < 1)", op.text));
  }

  // `op` is the second comparison of the expression that begins at token `begin`.
  [[noreturn]] void fail_chained(std::size_t begin, const token& op) const {
    int brackets = 0;
    for (std::size_t at = begin; at + 1 < position(); ++at) {
      const token& item = read_at(at);
      if (is_one_of(item, {"(", "["})) ++brackets;
      if (is_one_of(item, {")", "]"})) --brackets;
      if (brackets == 0 && is_bitwise(item)) fail_unbracketed(item);
    }
    fail("comparisons cannot be chained", op.at, "write (a < b) & (b < c)");
  }

  const token* take_operator(std::size_t level) {
    if (peek().kind != token_kind::symbol) return nullptr;
    for (const std::string_view symbol : levels[level].symbols)
      if (!symbol.empty() && peek().text == symbol) return &advance();
    return nullptr;
  }

  value unary() {
    const token& op = peek();
    if (!op.is("-") && !op.is("+") && !op.is("~")) return power();
    const nesting level(*this);
    advance();
    const value operand = unary();
    return operation(op.at, [&] { return apply_unary(op.text, operand); });
  }

  // `**` has a higher precedence than a sign on its left and a lower one than a sign on its right:
  // -2 ** -1 is -(2 ** -1).
  value power() {
    const value base = postfix();
    const token& op = peek();
    if (!take("**")) return base;
    const nesting level(*this);
    const value exponent = unary();
    return operation(op.at, [&] { return apply_binary("**", base, exponent); });
  }

  value postfix() {
    value result = atom();
    while (true) {
      const token& op = peek();
      if (take("[")) {
        result = index(std::move(result), op);
      } else if (take(".")) {
        result = attribute(std::move(result), op);
      } else if (op.is("(")) {
        fail("this cannot be called", op.at);
      } else {
        return result;
      }
    }
  }

  value atom() {
    const token& first = peek();
    switch (first.kind) {
      case token_kind::integer:
        advance();
        if (first.integer > std::numeric_limits<std::int64_t>::max()) return {first.integer};
        return {static_cast<std::int64_t>(first.integer)};
      case token_kind::real:
        advance();
        return {first.real};
      case token_kind::string:
        // Every value that contains the string holds a copy of it.
        if (first.text.size() > string_bytes_max)
          fail(fmt::format("a string of more than {} bytes", string_bytes_max), first.at,
               "strings name dtypes, modes and axes, as in 'float32' and 'ij,jk'");
        advance();
        return {std::string(first.text)};
      case token_kind::name:
        if (is_keyword(first.text) && first.text != "None" && first.text != "True" &&
            first.text != "False")
          fail_at_token();
        return name(advance());
      case token_kind::end:
        fail_at_token("expected an operand");
      case token_kind::symbol:
        break;
    }
    if (take("(")) return tuple(")", first);
    if (take("[")) return tuple("]", first);
    if (take("...") || take("…")) return {ellipsis};
    fail_at_token("expected an operand");
  }

  // The content of brackets. Round brackets without a comma only group.
  value tuple(std::string_view close, const token& open) {
    std::vector<value> elements;
    bool has_comma = false;
    while (!peek().is(close)) {
      elements.push_back(expression());
      if (!take(",")) break;
      has_comma = true;
    }
    if (!take(close)) fail_at_token(fmt::format("expected '{}'", close));
    if (open.is("(") && elements.size() == 1 && !has_comma) return std::move(elements.front());
    return tuple_of(std::move(elements), open.at,
                    open.is("[") ? sequence_kind::list : sequence_kind::tuple);
  }

  value name(const token& word) {
    if (peek().is("(")) return call(word, {});
    const std::string_view text = word.text;
    if (text == "None") return {none_t{}};
    if (text == "True") return {true};
    if (text == "False") return {false};
    if (const std::optional<value> found = scope_.find(text)) return *found;
    if (text == "np" || text == "numpy") return {namespace_t{}};
    if (find_function(text))
      fail(fmt::format("'{}' is a function: arguments in brackets must follow", text), word.at);
    fail(fmt::format("nothing is called '{}'", text), word.at, scope_.advice());
  }

  // ---- calls -----------------------------------------------------------------------------------

  // The opening bracket is next. `bound` is the object of a method call.
  value call(const token& word, std::vector<value> bound) {
    const function* called = find_function(word.text);
    if (!called && bound.empty() && scope_.is_defined(word.text))
      fail(fmt::format("'{}' is an array and cannot be called", word.text), peek().at);
    if (!called)
      fail(fmt::format("there is no function '{}'", word.text), word.at,
           "`shale eval --functions` lists them");
    expect("(");
    std::vector<value> positional = std::move(bound);
    std::vector<arguments::keyword> named;
    while (!peek().is(")")) {
      if (peek().kind == token_kind::name && peek(1).is("=")) {
        const token& parameter = advance();
        advance();
        if (std::any_of(named.begin(), named.end(), [&](const arguments::keyword& argument) {
              return argument.first == parameter.text;
            }))
          fail(fmt::format("'{}' is given twice", parameter.text), parameter.at);
        named.emplace_back(parameter.text, expression());
      } else {
        if (!named.empty()) fail("positional arguments come before named ones", peek().at);
        positional.push_back(expression());
      }
      if (!take(",")) break;
    }
    if (!take(")")) fail_at_token("expected ',' or ')'");
    for (const value& argument : positional) count_arrays(argument, word.at);
    for (const auto& [parameter, argument] : named) count_arrays(argument, word.at);
    return operation(word.at, [&] {
      return run(*called, arguments(called->name, std::move(positional), std::move(named)));
    });
  }

  static value run(const function& called, arguments given) {
    try {
      given.require_parameters_of(called.signature);
      value result = called.call(given);
      given.finish();
      return result;
    } catch (error& failure) {
      failure.add_detail(fmt::format("usage: {}", called.signature));
      throw;
    }
  }

  value attribute(value object, const token& dot) {
    if (peek().kind != token_kind::name) fail_at_token("expected a name after '.'");
    const token& word = advance();
    if (object.is<namespace_t>()) {
      if (peek().is("(")) return call(word, {});
      if (const std::optional<value> found = find_constant(word.text)) return *found;
      fail(fmt::format("there is no '{}'", word.text), word.at);
    }
    if (!object.is<expr>())
      fail(fmt::format("{} has no attribute '{}'", object.description(), word.text), dot.at);
    if (peek().is("(")) return call_method(std::move(object), word);
    const expr& array = object.as<expr>();
    // Only the transpose makes an operation.
    const std::optional<value> found =
        word.text == "T" ? operation(word.at, [&] { return array_property(array, word.text); })
                         : array_property(array, word.text);
    if (found) return *found;
    fail(fmt::format("arrays have no attribute '{}'", word.text), word.at,
         "there are T, shape, size, ndim, dtype and the methods that `shale eval --functions` "
         "marks");
  }

  value call_method(value object, const token& word) {
    const function* called = find_function(word.text);
    if (!called || !called->method)
      fail(fmt::format("arrays have no method '{}'", word.text), word.at,
           called ? fmt::format("call it as {}", called->signature)
                  : std::string("`shale eval --functions` lists what there is"));
    return call(word, {std::move(object)});
  }

  // ---- indexing --------------------------------------------------------------------------------

  value index(value object, const token& open) {
    std::vector<value> entries;
    bool has_comma = false;
    while (!peek().is("]")) {
      entries.push_back(slice_or_expression());
      if (!take(",")) break;
      has_comma = true;
    }
    if (!take("]")) fail_at_token("expected ',' or ']'");
    if (entries.empty()) fail("an index is missing", open.at);
    if (entries.size() == 1 && !has_comma && entries.front().is<value::tuple>() &&
        entries.front().as<value::tuple>().kind() == sequence_kind::tuple)
      entries = std::vector<value>(entries.front().as<value::tuple>().elements());
    return operation(open.at, [&] { return index_value(object, entries); });
  }

  value slice_or_expression() {
    slice range;
    if (!peek().is(":")) {
      value first = expression();
      if (!peek().is(":")) return first;
      range.start = bound(first, "a slice's start");
    }
    expect(":");
    const auto ends = [&] { return peek().is(":") || peek().is(",") || peek().is("]"); };
    if (!ends()) range.stop = bound(expression(), "a slice's stop");
    if (take(":") && !ends()) {
      const std::size_t step_at = peek().at;
      range.step = bound(expression(), "a slice's step").value_or(1);
      if (range.step == 0) fail("a slice's step cannot be 0", step_at);
    }
    return {range};
  }

  // The bound of a slice; None is no bound. `subject` begins the message of an error.
  std::optional<index_t> bound(const value& number, std::string_view subject) {
    if (number.is<none_t>()) return std::nullopt;
    return at(read_at(position() - 1).at, [&] { return to_index(number, subject); });
  }

  scope scope_;
  std::size_t result_at_ = 0;
  int depth_ = 0;
  std::size_t operations_ = 0;
};

}  // namespace

expr parse_expression(std::string_view text, const bindings& arrays) {
  return parser(text, arrays).parse_array();
}

value parse_value(std::string_view text, const bindings& arrays) {
  return parser(text, arrays).parse();
}

}  // namespace shale::tools
