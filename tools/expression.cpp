#include "expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "functions.hpp"
#include "indexing.hpp"
#include "interrupt.hpp"
#include "token_cursor.hpp"
#include "value.hpp"

namespace shale::tools {

namespace {

constexpr std::array<std::string_view, 15> keywords{"and",  "or",     "not",   "if",     "else",
                                                    "for",  "lambda", "in",    "is",     "def",
                                                    "None", "True",   "False", "import", "return"};

bool is_keyword(std::string_view name) {
  return std::find(keywords.begin(), keywords.end(), name) != keywords.end();
}

constexpr std::size_t longest_string = 100;  // bytes

// Binary operators by how tightly they bind, loosest first; `**` stands by itself in power().
struct precedence_level {
  std::array<std::string_view, 6> symbols;
  bool chains;  // whether a op b op c means (a op b) op c
};
constexpr std::array<precedence_level, 6> levels{{{{"==", "!=", "<", "<=", ">", ">="}, false},
                                                  {{"|"}, true},
                                                  {{"^"}, true},
                                                  {{"&"}, true},
                                                  {{"+", "-"}, true},
                                                  {{"*", "/", "//", "%", "@"}, true}}};

bool is_one_of(const token& which, std::initializer_list<std::string_view> symbols) {
  return which.kind == token_kind::symbol &&
         std::find(symbols.begin(), symbols.end(), which.text) != symbols.end();
}
bool is_comparison(const token& which) {
  return is_one_of(which, {"==", "!=", "<", "<=", ">", ">="});
}
bool is_bitwise(const token& which) { return is_one_of(which, {"&", "|", "^"}); }

// Reads tokens left to right and builds the value as it goes: one function a level of the grammar.
class parser : private token_cursor {
 public:
  parser(std::string_view text, const bindings& arrays) : token_cursor(text), arrays_(arrays) {}

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
  void count_operations(std::size_t more, std::size_t where) {
    operations_ += more;
    if (operations_ > max_expression_operations)
      fail(fmt::format("more than {} operations", max_expression_operations), where,
           "compute parts of it into arrays of their own first");
  }

  template <class Body>
  std::invoke_result_t<Body&> operation(std::size_t where, Body&& body) {
    count_operations(1, where);
    throw_if_interrupted();
    return at(where, std::forward<Body>(body));
  }

  // Joining as many arrays as a tuple holds is as much work as so many operations.
  void count_arrays(const value& argument, std::size_t where) {
    if (argument.is<value::tuple>())
      count_operations(argument.as<value::tuple>().elements().size(), where);
  }

  // Counts one level of nesting for as long as it lives.
  class nesting {
   public:
    explicit nesting(parser& in) : in_(in) {
      if (++in_.depth_ > max_expression_depth)
        in_.fail(fmt::format("nested more than {} deep", max_expression_depth), in_.peek().at);
    }
    ~nesting() { --in_.depth_; }
    nesting(const nesting&) = delete;
    nesting& operator=(const nesting&) = delete;

   private:
    parser& in_;
  };

  // ---- grammar ---------------------------------------------------------------------------------

  void assign() {
    const token& name = advance();
    if (is_keyword(name.text)) fail(fmt::format("'{}' cannot be a name", name.text), name.at);
    expect("=");
    value assigned = tuple_or_expression();
    if (!take(";")) fail_at_token("expected ';' and then what to compute");
    locals_.insert_or_assign(name.text, std::move(assigned));
  }

  value tuple_or_expression() {
    value first = expression();
    if (!peek().is(",")) return first;
    const std::size_t where = peek().at;
    std::vector<value> all{std::move(first)};
    while (take(",")) {
      if (peek().kind == token_kind::end || peek().is(";")) break;
      all.push_back(expression());
    }
    return tuple_of(std::move(all), where);
  }

  value tuple_of(std::vector<value> elements, std::size_t where,
                 sequence_kind kind = sequence_kind::tuple) const {
    value::tuple made(std::move(elements), kind);
    if (made.depth() > max_expression_depth)
      fail(fmt::format("tuples nested more than {} deep", max_expression_depth), where);
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
      if (is_bitwise(*op) && compares_beside(begin) && !(is_logical(left) && is_logical(right)))
        fail_unbracketed(*op);
      left = operation(op->at, [&] { return apply_binary(op->text, left, right); });
    }
    return left;
  }

  // What & | ^ take: anything but fractions.
  static bool is_logical(const value& operand) {
    if (!operand.is<expr>()) return !operand.is<double>();
    const dtype_kind of = kind(operand.as<expr>().dtype());
    return of != dtype_kind::floating && of != dtype_kind::complex;
  }

  // Whether what was read from token `begin` on is an operand of a comparison, brackets apart.
  bool compares_beside(std::size_t begin) const {
    return is_comparison(peek()) || (begin > 0 && is_comparison(read_at(begin - 1)));
  }

  [[noreturn]] void fail_unbracketed(const token& op) const {
    fail(fmt::format("'{}' binds tighter than comparisons, as in Python", op.text), op.at,
         fmt::format("put them into brackets: (a > 0) {} (a < 1)", op.text));
  }

  // `op` is the second comparison in what begins at token `begin`.
  [[noreturn]] void fail_chained(std::size_t begin, const token& op) const {
    int brackets = 0;
    for (std::size_t at = begin; at + 1 < position(); ++at) {
      const token& each = read_at(at);
      if (is_one_of(each, {"(", "["})) ++brackets;
      if (is_one_of(each, {")", "]"})) --brackets;
      if (brackets == 0 && is_bitwise(each)) fail_unbracketed(each);
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

  // Binds tighter than a sign on its left and looser than one on its right: -2 ** -1 is -(2 ** -1).
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
        return {first.integer};
      case token_kind::real:
        advance();
        return {first.real};
      case token_kind::string:
        // Every value that the string becomes part of holds a copy of it.
        if (first.text.size() > longest_string)
          fail(fmt::format("a string of more than {} bytes", longest_string), first.at,
               "strings name dtypes, as in 'float32'");
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

  // The inside of brackets; round ones without a comma only group.
  value tuple(std::string_view close, const token& open) {
    std::vector<value> all;
    bool comma = false;
    while (!peek().is(close)) {
      all.push_back(expression());
      if (!take(",")) break;
      comma = true;
    }
    if (!take(close)) fail_at_token(fmt::format("expected '{}'", close));
    if (open.is("(") && all.size() == 1 && !comma) return std::move(all.front());
    return tuple_of(std::move(all), open.at,
                    open.is("[") ? sequence_kind::list : sequence_kind::tuple);
  }

  value name(const token& which) {
    if (peek().is("(")) return call(which, {});
    const std::string_view text = which.text;
    if (text == "None") return {none_t{}};
    if (text == "True") return {true};
    if (text == "False") return {false};
    if (const auto found = locals_.find(text); found != locals_.end()) return found->second;
    if (const auto found = arrays_.find(text); found != arrays_.end()) return {found->second};
    if (const std::optional<value> found = well_known(text)) return *found;
    if (text == "np" || text == "numpy") return {namespace_t{}};
    if (find_function(text))
      fail(fmt::format("'{}' is a function: arguments in brackets must follow", text), which.at);
    fail(fmt::format("nothing is called '{}'", text), which.at, names_advice());
  }

  bool is_bound(std::string_view text) const {
    return locals_.contains(text) || arrays_.contains(text);
  }

  static std::optional<value> well_known(std::string_view text) {
    if (text == "newaxis") return value{none_t{}};
    if (const double* constant = find_constant(text)) return value{*constant};
    if (const std::optional<dtype> type = parse_dtype(text)) return value{*type};
    return std::nullopt;
  }

  std::string names_advice() const {
    if (arrays_.empty()) return "bind arrays with --let NAME=FILE:ARRAY";
    std::string names;
    for (const auto& [each, array] : arrays_) names += (names.empty() ? "" : ", ") + each;
    return fmt::format("--let has bound {}", names);
  }

  // The brackets' inside is next; `bound` is the object of a method call.
  value call(const token& which, std::vector<value> bound) {
    const function* called = find_function(which.text);
    if (!called && bound.empty() && is_bound(which.text))
      fail(fmt::format("'{}' is an array and cannot be called", which.text), peek().at);
    if (!called)
      fail(fmt::format("there is no function '{}'", which.text), which.at,
           "`shale eval --functions` lists them");
    expect("(");
    std::vector<value> positional = std::move(bound);
    std::vector<arguments::keyword> named;
    while (!peek().is(")")) {
      if (peek().kind == token_kind::name && peek(1).is("=")) {
        const token& parameter = advance();
        advance();
        if (std::any_of(named.begin(), named.end(), [&](const arguments::keyword& each) {
              return each.first == parameter.text;
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
    for (const value& each : positional) count_arrays(each, which.at);
    for (const auto& [parameter, each] : named) count_arrays(each, which.at);
    return operation(which.at, [&] {
      arguments given(called->name, std::move(positional), std::move(named));
      try {
        value result = called->call(given);
        given.finish();
        return result;
      } catch (error& failure) {
        failure.add_detail(fmt::format("usage: {}", called->signature));
        throw;
      }
    });
  }

  value attribute(value object, const token& dot) {
    if (peek().kind != token_kind::name) fail_at_token("expected a name after '.'");
    const token& which = advance();
    if (object.is<namespace_t>()) {
      if (peek().is("(")) return call(which, {});
      if (const std::optional<value> found = well_known(which.text)) return *found;
      fail(fmt::format("there is no '{}'", which.text), which.at);
    }
    if (!object.is<expr>())
      fail(fmt::format("{} has no attribute '{}'", object.description(), which.text), dot.at);
    if (peek().is("(")) {
      const function* called = find_function(which.text);
      if (!called || !called->method)
        fail(fmt::format("arrays have no method '{}'", which.text), which.at,
             called ? fmt::format("call it as {}", called->signature)
                    : std::string("`shale eval --functions` lists what there is"));
      return call(which, {std::move(object)});
    }
    const expr& array = object.as<expr>();
    if (which.text == "T")
      return operation(which.at, [&] {
        dims axes;
        for (index_t axis = array.rank(); axis-- > 0;) axes.push_back(axis);
        return value{array.permute_dims(axes)};
      });
    if (which.text == "shape") {
      std::vector<value> shape;
      for (const index_t extent : array.shape()) shape.emplace_back(std::int64_t{extent});
      return {value::tuple(std::move(shape))};
    }
    if (which.text == "size") return {std::int64_t{array.size()}};
    if (which.text == "ndim") return {std::int64_t{array.rank()}};
    if (which.text == "dtype") return {array.dtype()};
    fail(fmt::format("arrays have no attribute '{}'", which.text), which.at,
         "there are T, shape, size, ndim, dtype and the methods that `shale eval --functions` "
         "marks");
  }

  // ---- indexing --------------------------------------------------------------------------------

  value index(value object, const token& open) {
    std::vector<value> entries;
    bool tuple = false;
    while (!peek().is("]")) {
      entries.push_back(slice_or_expression());
      if (!take(",")) break;
      tuple = true;
    }
    if (!take("]")) fail_at_token("expected ',' or ']'");
    if (entries.empty()) fail("an index is missing", open.at);
    if (entries.size() == 1 && !tuple && entries.front().is<value::tuple>() &&
        entries.front().as<value::tuple>().kind() == sequence_kind::tuple)
      entries = std::vector<value>(entries.front().as<value::tuple>().elements());
    return operation(open.at, [&] { return index_value(object, entries); });
  }

  value slice_or_expression() {
    slice which;
    const bool starts = !peek().is(":");
    if (starts) {
      value first = expression();
      if (!peek().is(":")) return first;
      which.start = bound(first, "a slice's start");
    }
    expect(":");
    const auto ends = [&] { return peek().is(":") || peek().is(",") || peek().is("]"); };
    if (!ends()) which.stop = bound(expression(), "a slice's stop");
    if (take(":") && !ends()) {
      const std::size_t where = peek().at;
      which.step = bound(expression(), "a slice's step").value_or(1);
      if (which.step == 0) fail("a slice's step cannot be 0", where);
    }
    return {which};
  }

  std::optional<index_t> bound(const value& from, std::string_view what) {
    if (from.is<none_t>()) return std::nullopt;
    return at(read_at(position() - 1).at, [&] { return to_index(from, what); });
  }

  const bindings& arrays_;
  std::size_t result_at_ = 0;
  std::map<std::string_view, value> locals_;
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

bool is_bindable(std::string_view text) noexcept {
  if (text.empty() || is_keyword(text)) return false;
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return letter(text.front()) && std::all_of(text.begin(), text.end(), [&](char c) {
           return letter(c) || (c >= '0' && c <= '9');
         });
}

}  // namespace shale::tools
