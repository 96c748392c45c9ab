-- A mix of small Lua benchmarks. SCALE is set by the line put before this text. No clock, no randomness of the
-- host, no order of pairs() in the output. No error and no coroutine either: the guest has no longjmp.

local seed = 42
local function chance(bound)
  seed = (seed * 1103515245 + 12345) & 0x7fffffff
  return seed % bound
end

local function hash(text)
  local sum = 0x811c9dc5
  for i = 1, #text do sum = ((sum ~ text:byte(i)) * 0x01000193) & 0xffffffff end
  return sum
end

local function repeated(rounds, work)
  local total = 0
  for i = 1, rounds do total = total + work(i) end
  return total
end

local function fibonacci(n)
  if n < 2 then return n end
  return fibonacci(n - 1) + fibonacci(n - 2)
end

local function sieve(limit)
  local composite, primes = {}, 0
  for i = 2, limit do
    if not composite[i] then
      primes = primes + 1
      for j = i * 2, limit, i do composite[j] = true end
    end
  end
  return primes
end

local Shape = {}
Shape.__index = Shape
function Shape.new(side) return setmetatable({ side = side }, Shape) end
function Shape:area() return self.side * self.side end
local Triangle = setmetatable({}, { __index = Shape })
Triangle.__index = Triangle
function Triangle.new(side) return setmetatable({ side = side }, Triangle) end
function Triangle:area() return Shape.area(self) / 2 end
local function shapes(count)
  local total = 0
  for i = 1, count do total = total + (i % 3 == 0 and Triangle.new(i % 19) or Shape.new(i % 17)):area() end
  return total
end

local function words(count)
  local seen, ranked = {}, {}
  for _ = 1, count do
    local word = "w" .. chance(500)
    seen[word] = (seen[word] or 0) + 1
  end
  for word, times in pairs(seen) do ranked[#ranked + 1] = { word, times } end
  table.sort(ranked, function(a, b) return a[2] > b[2] or (a[2] == b[2] and a[1] < b[1]) end)
  local parts = {}
  for i, pair in ipairs(ranked) do parts[i] = pair[1] .. ":" .. pair[2] end
  return hash(table.concat(parts, ","))
end

local function matching(rounds)
  local text = ("size_t count = table[12]->offset + 0xff; /* 2024-02-29 */ "):rep(4)
  local found = 0
  for _ = 1, rounds do
    for _ in text:gmatch("[%a_]+") do found = found + 1 end
    found = found + #text:gsub("(%d+)-(%d+)-(%d+)", "%3/%2/%1")
    found = found + #string.format("%5d %s %08.3f", found, text:sub(3, 9):upper(), found / 7)
  end
  return found
end

local function queens(size)
  local solutions = 0
  local function place(row, columns, left, right)
    if row == size then
      solutions = solutions + 1
      return
    end
    local free = ~(columns | left | right) & ((1 << size) - 1)
    while free ~= 0 do
      local bit = free & -free
      place(row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1)
      free = free & (free - 1)
    end
  end
  place(0, 0, 0, 0)
  return solutions
end

local function bodies(steps)
  local all = { { 0, 0, 0, 0, 40 }, { 5, 0, 0, 2, 1 }, { 0, 9, -2, 0, 1 }, { -14, 0, 0, -1.5, 2 } }
  for _ = 1, steps do
    for _, a in ipairs(all) do
      for _, b in ipairs(all) do
        if a ~= b then
          local x, y = b[1] - a[1], b[2] - a[2]
          local pull = b[5] * 0.001 / (x * x + y * y + 0.01) ^ 1.5
          a[3] = a[3] + x * pull
          a[4] = a[4] + y * pull
        end
      end
    end
    for _, a in ipairs(all) do
      a[1] = a[1] + a[3] * 0.001
      a[2] = a[2] + a[4] * 0.001
    end
  end
  return string.format("%.6f %.6f %.6f", all[2][1], all[3][1], all[4][1])
end

local function trees(depth)
  if depth == 0 then return {} end
  return { trees(depth - 1), trees(depth - 1) }
end
local function count(tree)
  return tree[1] and 1 + count(tree[1]) + count(tree[2]) or 1
end

print("fibonacci", repeated(SCALE, function() return fibonacci(17) end))
print("sieve", sieve(6000 * SCALE))
print("shapes", shapes(3000 * SCALE))
print("words", words(2000 * SCALE))
print("matching", matching(100 * SCALE))
print("queens", repeated(SCALE, function(i) return queens(6 + i % 2) end))
print("bodies", bodies(300 * SCALE))
print("trees", repeated(SCALE, function(i) return count(trees(9 + i % 3)) end))
